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

// widen is by how much more is looked through where a part of the bucket has too few revisions.
const latestWidening = 4

// Latest returns the newest revisions of all keys without their values and digests, removals and keys that no
// node reads included, the newest first: at most so many, and whether the bucket has older ones. It keeps 16 of
// each key.
func (s Assignments) Latest(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	last, err := s.last(ctx)
	if err != nil {
		return nil, false, err
	}
	// Most numbers may be those of revisions that are not kept.
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

// Audit returns the newest revisions as Latest does, but where there are more, those of one node or group are a
// quarter at most, unless others have fewer: whoever may assign to one of them does not hide what is assigned to
// others. More is that the bucket has others.
func (s Assignments) Audit(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	last, err := s.last(ctx)
	if err != nil || last == 0 {
		return nil, false, err
	}

	return readNewest(ctx, last+1, most, s.between)
}

// last returns the number of the last revision, zero where there is none.
func (s Assignments) last(ctx context.Context) (uint64, error) {
	bucket := s.store.Names().Manifests()
	last, err := s.store.Last(ctx, KVStream(bucket), KVSubject(bucket, ">"))
	if errors.Is(err, model.ErrNotFound) {
		return 0, nil
	}

	return last.Sequence, err
}

// between returns the revisions from one to another, which is not among them, without their values, and how many
// bytes they have: a single one, or at most so many of so many bytes. The error wraps newest.ErrTooMuch where there
// are more.
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
