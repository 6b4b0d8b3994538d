package assignments

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/scan"
	"github.com/musterfleet/muster/model"
)

// widen is by how much more is looked through where a part of the bucket has too few revisions.
const widen = 4

// Latest returns the newest revisions of all keys without their values and digests, removals and keys that no
// node reads included, the newest first: at most so many, and whether the bucket has older ones. It keeps 16 of
// each key.
func (s Bucket) Latest(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	bucket := s.store.Names().Manifests()
	last, err := s.store.Last(ctx, kvstore.KVStream(bucket), kvstore.KVSubject(bucket, ">"))
	if errors.Is(err, model.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	// Most numbers may be those of revisions that are not kept.
	for to, window := last.Sequence+1, uint64(max(most, 1)); to > 1 && len(all) <= most; window *= widen {
		from := uint64(1)
		if to > window {
			from = to - window
		}
		older, err := s.between(ctx, from, to)
		if err != nil {
			return nil, false, err
		}
		all, to = append(older, all...), from
	}
	if more = len(all) > most; more {
		all = all[len(all)-most:]
	}
	slices.Reverse(all)

	return all, more, nil
}

// between returns the revisions from one to another, which is not among them.
func (s Bucket) between(ctx context.Context, from, to uint64) ([]model.Entry, error) {
	bucket := s.store.Names().Manifests()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{kvstore.KVSubject(bucket, ">")}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: true}
	var out []model.Entry
	for m, err := range scan.Stream(ctx, s.store, kvstore.KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, err
		}
		if m.Sequence >= to {
			break
		}
		e := newEntry(strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")), m)
		e.Value, e.Digest, e.Invalid = nil, "", kvstore.IsInvalidKey(e.Key)
		out = append(out, e)
	}

	return out, nil
}
