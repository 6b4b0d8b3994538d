package control

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/model"
)

const (
	// widen is by how much more is looked through where a part of the bucket has too few revisions.
	widen = 4
	// lookedAt is how many times what is returned is looked at, where one family has much, and lookedBytes how
	// much of it.
	lookedAt    = 10
	lookedBytes = 32 << 20
	// batch is how many revisions are read at once.
	batch = 256
)

// Changes returns the newest revisions of the control keys, the newest first: at most so many, and whether the
// bucket has others. It keeps 16 of each key. Where there are more, those of one node or group are a quarter at most,
// unless others have fewer: whoever may write one of them does not hide what is written about others.
func (b Bucket) Changes(ctx context.Context, most int) (all []model.Entry, more bool, err error) {
	if err := b.there(ctx); err != nil {
		return nil, false, err
	}
	bucket := b.store.Names().Control()
	last, err := b.store.Last(ctx, kvstore.KVStream(bucket), kvstore.KVSubject(bucket, ">"))
	if errors.Is(err, model.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	to, size := last.Sequence+1, 0
	// Most numbers may be those of revisions that are not kept.
	for window := uint64(max(most, 1)); to > 1 && len(all) < lookedAt*most && size < lookedBytes; window *= widen {
		from := uint64(1)
		if to > window {
			from = to - window
		}
		older, bytes, err := b.between(ctx, from, to)
		if err != nil {
			return nil, false, err
		}
		all, to, size = append(older, all...), from, size+bytes
	}
	more = to > 1 || len(all) > most
	slices.Reverse(all)

	return shared(all, most), more, nil
}

// between returns the revisions from one to another, which is not among them, and how many bytes they have.
func (b Bucket) between(ctx context.Context, from, to uint64) (out []model.Entry, size int, err error) {
	bucket := b.store.Names().Control()
	stream, subject := kvstore.KVStream(bucket), kvstore.KVSubject(bucket, ">")
	for more := true; more && from < to; {
		page, err := b.store.Page(ctx, answer.Asked{Stream: stream, Subject: subject, From: from}, batch)
		for _, m := range page.Messages {
			if m.Sequence >= to {
				return out, size, nil
			}
			size += len(m.Data)
			out = append(out, changeOf(strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")), m))
		}
		if err != nil {
			return nil, 0, err
		}
		from, more = page.Next, page.More
	}

	return out, size, nil
}

// shared returns at most so many of the changes, in their order: the newest, but of each family a quarter at most
// while others have some that are older.
func shared(all []model.Entry, most int) []model.Entry {
	if len(all) <= most {
		return all
	}
	of, taken := map[string]int{}, make([]bool, len(all))
	left := most
	take := func(may func(family string) bool) {
		for i, e := range all {
			family, _, _ := model.SplitKey(e.Key)
			if left > 0 && !taken[i] && may(family) {
				taken[i] = true
				of[family]++
				left--
			}
		}
	}
	take(func(family string) bool { return of[family] < max(most/4, 1) })
	take(func(string) bool { return true })
	out := make([]model.Entry, 0, most)
	for i, e := range all {
		if taken[i] {
			out = append(out, e)
		}
	}

	return out
}

func changeOf(key string, m kvstore.Message) model.Entry {
	out := newEntry(key, m)
	if err := m.Refusal(); err != nil {
		out.Refused, out.Value = err.Error(), nil
	}

	return out
}
