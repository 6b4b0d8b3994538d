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
	all, to, err := b.lookThrough(ctx, last.Sequence+1, most)
	if err != nil {
		return nil, false, err
	}
	more = to > 1 || len(all) > most
	slices.Reverse(all)

	return shared(all, most), more, nil
}

// lookThrough returns the newest revisions before a number, the oldest first, as many as are looked at, and the
// number from which on they are all there are.
func (b Bucket) lookThrough(ctx context.Context, to uint64, most int) (all []model.Entry, from uint64, err error) {
	// Most numbers may be those of revisions that are not kept, so each window is wider than the one before it: until
	// one has too much. What is in it is found in smaller ones then, and what is before it is not looked at.
	window, by, end, size := uint64(max(most, 1)), uint64(widen), uint64(1), 0
	for to > end && len(all) < lookedAt*most && size < lookedBytes {
		window = min(window, to-end)
		older, bytes, err := b.between(ctx, to-window, to, lookedAt*most-len(all), lookedBytes-size)
		switch {
		case errors.Is(err, errTooMuch):
			end, window, by = to-window, max(window/widen, 1), 1
		case err != nil:
			return nil, 0, err
		default:
			all, to, size = append(older, all...), to-window, size+bytes
			window *= by
		}
	}

	return all, to, nil
}

// errTooMuch is what has more revisions, or more bytes, than are looked at.
var errTooMuch = errors.New("too much to look at")

// between returns the revisions from one to another, which is not among them, and how many bytes they have: a
// single one, or at most so many of so many bytes. The error wraps errTooMuch where there are more.
func (b Bucket) between(ctx context.Context, from, to uint64, most, bytes int) (out []model.Entry, size int, err error) {
	bucket := b.store.Names().Control()
	stream, subject := kvstore.KVStream(bucket), kvstore.KVSubject(bucket, ">")
	for more := true; more && from < to; {
		page, err := b.store.Page(ctx, answer.Asked{Stream: stream, Subject: subject, From: from}, int(min(batch, to-from)))
		for _, m := range page.Messages {
			if m.Sequence >= to {
				return out, size, nil
			}
			size += len(m.Data)
			out = append(out, changeOf(strings.TrimPrefix(m.Subject, kvstore.KVSubject(bucket, "")), m))
			if len(out) > most || len(out) > 1 && size > bytes {
				return nil, 0, errTooMuch
			}
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
