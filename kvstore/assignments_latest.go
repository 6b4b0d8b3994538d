package kvstore

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// latestWidening multiplies the search window after each read.
const latestWidening = 4

// Latest returns at most most revisions of all keys, newest first, and reports whether the bucket has
// more. It includes removals and invalid keys. Entries have no values and digests. The bucket stores
// 16 revisions of each key.
func (s Assignments) Latest(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	last, err := s.last(ctx)
	if err != nil {
		return nil, false, err
	}
	// The bucket may have dropped most revisions, so each window is wider than the previous one.
	for to, window := last+1, uint64(max(most, 1)); to > 1 && len(all) <= most; window *= latestWidening {
		from := uint64(1)
		if to > window {
			from = to - window
		}
		older, _, err := s.between(ctx, from, to, math.MaxInt, math.MaxInt)
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

// Audit returns the newest revisions like Latest. If more revisions exist, one node or group gets a
// quarter of the result unless the others cannot fill the rest. So a user with write access to one
// cannot hide changes to the others.
func (s Assignments) Audit(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	last, err := s.last(ctx)
	if err != nil || last == 0 {
		return nil, false, err
	}

	return readNewest(ctx, last+1, most, s.between)
}

// last returns the last revision, or zero if the bucket is empty.
func (s Assignments) last(ctx context.Context) (uint64, error) {
	bucket := s.store.Names().Manifests()
	last, err := s.store.Last(ctx, KVStream(bucket), KVSubject(bucket, ">"))
	if errors.Is(err, model.ErrNotFound) {
		return 0, nil
	}

	return last.Sequence, err
}

// between implements revisionRange.
func (s Assignments) between(ctx context.Context, from, to uint64, most, bytes int) (out []model.Entry, size int, err error) {
	bucket := s.store.Names().Manifests()
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{KVSubject(bucket, ">")}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: true}
	for m, err := range scanStream(ctx, s.store, KVStream(bucket), cfg, false) {
		if err != nil {
			return nil, 0, err
		}
		if m.Sequence >= to {
			break
		}
		e := newAssignment(strings.TrimPrefix(m.Subject, KVSubject(bucket, "")), m)
		e.Value, e.Digest, e.Invalid = nil, "", IsInvalidKey(e.Key)
		out = append(out, e)
		size += messageSize(m)
		if len(out) > most || len(out) > 1 && size > bytes {
			return nil, 0, errTooMuch
		}
	}

	return out, size, nil
}
