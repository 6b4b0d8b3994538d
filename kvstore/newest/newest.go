// Package newest finds the newest revisions of a bucket, of which those of one family do not displace all others.
package newest

import (
	"context"
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
)

const (
	// widen is by how much more is looked through where a part of the bucket has too few revisions.
	widen = 4
	// lookedAt is how many times what is returned is looked at, where one family has much, and lookedBytes how
	// much of it.
	lookedAt    = 10
	lookedBytes = 32 << 20
	// part is the part of what is returned that one family has at most while others have some.
	part = 4
)

// ErrTooMuch is what has more revisions, or more bytes, than are looked at.
var ErrTooMuch = errors.New("too much to look at")

// Between returns the revisions from one to another, which is not among them, the oldest first, and how many bytes
// they have: a single one, or at most so many of so many bytes. The error wraps ErrTooMuch where there are more.
type Between func(ctx context.Context, from, to uint64, most, bytes int) (all []model.Entry, size int, err error)

// Read returns the newest revisions before a number, the newest first: at most so many, and whether there are others.
// Where there are more, those of one family are a quarter at most, unless others have fewer: whoever may write one of
// them does not hide what is written about others. The error is that of between.
func Read(ctx context.Context, to uint64, most int, between Between) (all []model.Entry, more bool, err error) {
	all, to, err = lookThrough(ctx, to, most, between)
	if err != nil {
		return nil, false, err
	}
	more = to > 1 || len(all) > most
	slices.Reverse(all)

	return Shared(all, most, familyOf), more, nil
}

// lookThrough returns the newest revisions before a number, the oldest first, as many as are looked at, and the
// number from which on they are all there are.
func lookThrough(ctx context.Context, to uint64, most int, between Between) (all []model.Entry, from uint64, err error) {
	// Most numbers may be those of revisions that are not kept, so each window is wider than the one before it: until
	// one has too much. What is in it is found in smaller ones then, and what is before it is not looked at.
	window, by, end, size := uint64(max(most, 1)), uint64(widen), uint64(1), 0
	for to > end && len(all) < lookedAt*most && size < lookedBytes && !suffices(all, most) {
		window = min(window, to-end)
		older, bytes, err := between(ctx, to-window, to, lookedAt*most-len(all), lookedBytes-size)
		switch {
		case errors.Is(err, ErrTooMuch):
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

// suffices reports whether there are more than are returned, and nothing older than these is, whatever there is.
func suffices(all []model.Entry, most int) bool {
	of, count := map[string]int{}, 0
	for _, e := range all {
		if family := familyOf(e); of[family] < share(most) {
			of[family]++
			count++
		}
	}

	return count > most
}

// share is how many one family has at least, where it has as many.
func share(most int) int { return max(most/part, 1) }

func familyOf(e model.Entry) string {
	family, _, _ := model.SplitKey(e.Key)

	return family
}

// Shared returns at most so many of what is listed, the newest first, in its order: the newest, but of each family a
// quarter at most while others have some that are older.
func Shared[T any](all []T, most int, familyOf func(T) string) []T {
	if len(all) <= most {
		return all
	}
	of, taken := map[string]int{}, make([]bool, len(all))
	left := most
	take := func(may func(family string) bool) {
		for i, e := range all {
			family := familyOf(e)
			if left > 0 && !taken[i] && may(family) {
				taken[i] = true
				of[family]++
				left--
			}
		}
	}
	take(func(family string) bool { return of[family] < share(most) })
	take(func(string) bool { return true })
	out := make([]T, 0, most)
	for i, e := range all {
		if taken[i] {
			out = append(out, e)
		}
	}

	return out
}
