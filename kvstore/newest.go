package kvstore

import (
	"context"
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
)

const (
	// widenWindow multiplies the search window after each read and divides it after errTooMuch.
	widenWindow = 4
	// searchRevisions and searchBytes limit the search: at most searchRevisions times the requested
	// number of revisions, and searchBytes bytes.
	searchRevisions = 10
	searchBytes     = 32 << 20
	// quotaDivisor is the divisor of the quota: a family gets 1/quotaDivisor of the result while other
	// families can fill the rest.
	quotaDivisor = 4
)

// errTooMuch reports that a range holds more revisions or bytes than the caller allowed.
var errTooMuch = errors.New("too much to look at")

// revisionRange returns the revisions in [from, to), oldest first, and their total size in bytes. The
// error wraps errTooMuch if the range holds more than most revisions or more than bytes bytes. A
// single revision may exceed the byte limit.
type revisionRange func(ctx context.Context, from, to uint64, most, bytes int) (all []model.Entry, size int, err error)

// readNewest returns at most most revisions before to, newest first, and reports whether the bucket
// may have more. If more revisions exist, one family gets a quarter of the result unless the other
// families cannot fill the rest. So a user with write access to one family cannot hide changes to the
// others. readNewest returns the errors of between, except errTooMuch.
func readNewest(ctx context.Context, to uint64, most int, between revisionRange) (all []model.Entry, more bool, err error) {
	all, to, err = searchNewest(ctx, to, most, between)
	if err != nil {
		return nil, false, err
	}
	more = to > 1 || len(all) > most
	slices.Reverse(all)

	return ShareByFamily(all, most, entryFamily), more, nil
}

// searchNewest returns the newest revisions before to, oldest first, up to the search limits. The
// result holds every revision in [from, to).
func searchNewest(ctx context.Context, to uint64, most int, between revisionRange) (all []model.Entry, from uint64, err error) {
	// The bucket may have dropped most revisions, so each window is wider than the previous one. When a window
	// holds too much, the search continues inside it with smaller windows and ignores older revisions.
	window, by, end, size := uint64(max(most, 1)), uint64(widenWindow), uint64(1), 0
	for to > end && len(all) < searchRevisions*most && size < searchBytes && !fillsQuota(all, most) {
		window = min(window, to-end)
		older, bytes, err := between(ctx, to-window, to, searchRevisions*most-len(all), searchBytes-size)
		switch {
		case errors.Is(err, errTooMuch):
			end, window, by = to-window, max(window/widenWindow, 1), 1
		case err != nil:
			return nil, 0, err
		default:
			all, to, size = append(older, all...), to-window, size+bytes
			window *= by
		}
	}

	return all, to, nil
}

// fillsQuota reports whether all fills the result even with the quota, so that older revisions cannot
// change it.
func fillsQuota(all []model.Entry, most int) bool {
	of, count := map[string]int{}, 0
	for _, e := range all {
		if family := entryFamily(e); of[family] < familyQuota(most) {
			of[family]++
			count++
		}
	}

	return count > most
}

// familyQuota returns the quota of one family.
func familyQuota(most int) int { return max(most/quotaDivisor, 1) }

func entryFamily(e model.Entry) string {
	family, _, _ := model.SplitKey(e.Key)

	return family
}

// ShareByFamily returns at most most elements of all, which is sorted newest first, in the same order.
// It first takes the newest elements of each family up to a quarter of most, then fills the rest with
// the newest remaining elements.
func ShareByFamily[T any](all []T, most int, familyOf func(T) string) []T {
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
	take(func(family string) bool { return of[family] < familyQuota(most) })
	take(func(string) bool { return true })
	out := make([]T, 0, most)
	for i, e := range all {
		if taken[i] {
			out = append(out, e)
		}
	}

	return out
}
