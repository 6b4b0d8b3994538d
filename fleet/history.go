package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/model"
)

// History reads the revisions of an assignment that the bucket still has.
type History interface {
	// History returns the revisions, oldest first, with their values; the error wraps
	// model.ErrNotFound when there is none.
	History(ctx context.Context, key string) ([]model.Entry, error)
}

// Revision returns one revision of an assignment, or with 0 the newest. The error
// wraps model.ErrNotFound and lists the existing ones; the newest of an assignment
// that was removed is not found.
func Revision(ctx context.Context, h History, key string, revision uint64) (model.Entry, error) {
	all, err := h.History(ctx, key)
	if err != nil {
		return model.Entry{}, err
	}
	if len(all) == 0 {
		return model.Entry{}, fmt.Errorf("%s: %w", key, model.ErrNotFound)
	}
	newest := all[len(all)-1]
	if revision == 0 && newest.Deleted {
		return model.Entry{}, fmt.Errorf("%s: %w: it was removed with revision %d", key, model.ErrNotFound, newest.Revision)
	}
	if revision == 0 {
		return newest, nil
	}
	at := slices.IndexFunc(all, func(e model.Entry) bool { return e.Revision == revision })
	if at < 0 {
		return model.Entry{}, fmt.Errorf("revision %d of %s: %w: the bucket has %s", revision, key, model.ErrNotFound, revisions(all))
	}

	return all[at], nil
}

// revisions lists the numbers of revisions.
func revisions(all []model.Entry) string {
	numbers := make([]string, len(all))
	for i, e := range all {
		numbers[i] = strconv.FormatUint(e.Revision, 10)
	}

	return strings.Join(numbers, ", ")
}

// Before returns the revision before another one. The error wraps
// model.ErrNotFound where the bucket has none.
func Before(ctx context.Context, h History, e model.Entry) (model.Entry, error) {
	all, err := h.History(ctx, e.Key)
	if err != nil {
		return model.Entry{}, err
	}
	at := slices.IndexFunc(all, func(o model.Entry) bool { return o.Revision == e.Revision })
	if at < 1 {
		return model.Entry{}, fmt.Errorf("revision %d of %s: no revision before it: %w", e.Revision, e.Key, model.ErrNotFound)
	}

	return all[at-1], nil
}

// Diff returns a unified diff of two revisions as Readable shows them, empty when
// they are the same.
func Diff(from, to model.Entry) string {
	return udiff.Unified(label(from), label(to), Readable(from.Value), Readable(to.Value))
}

func label(e model.Entry) string { return fmt.Sprintf("%s@%d", e.Key, e.Revision) }
