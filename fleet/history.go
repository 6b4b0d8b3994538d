package fleet

import (
	"context"
	"fmt"
	"slices"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/model"
)

// History is what the bucket still has of an assignment.
type History interface {
	// History gives its revisions, oldest first, with their values; the error wraps
	// model.ErrNotFound when there is none.
	History(ctx context.Context, key string) ([]model.Entry, error)
}

// Revision finds one revision of an assignment, or with 0 the newest. The error
// wraps model.ErrNotFound and says which there are; an assignment that was ended
// counts as not there when the newest is asked for.
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

// revisions lists the numbers of revisions in words.
func revisions(all []model.Entry) string {
	text := ""
	for i, e := range all {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprint(e.Revision)
	}

	return text
}

// Before finds the revision right before another one. The error wraps
// model.ErrNotFound where the bucket has none.
func Before(ctx context.Context, h History, e model.Entry) (model.Entry, error) {
	all, err := h.History(ctx, e.Key)
	if err != nil {
		return model.Entry{}, err
	}
	at := slices.IndexFunc(all, func(o model.Entry) bool { return o.Revision == e.Revision })
	if at < 1 {
		return model.Entry{}, fmt.Errorf("revision %d of %s: the one before it: %w", e.Revision, e.Key, model.ErrNotFound)
	}

	return all[at-1], nil
}

// Diff gives a unified diff of two revisions as Readable shows them, empty when
// they read the same.
func Diff(from, to model.Entry) string {
	return udiff.Unified(label(from), label(to), Readable(from.Value), Readable(to.Value))
}

func label(e model.Entry) string { return fmt.Sprintf("%s@%d", e.Key, e.Revision) }
