package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/model"
)

// Revision returns one of the stored revisions of an assignment, which are sorted,
// or with 0 the newest. The error wraps model.ErrNotFound and lists the existing
// ones; the newest of an assignment that was removed is not found.
func Revision(all []model.Entry, revision uint64) (model.Entry, error) {
	at := len(all) - 1
	if revision != 0 {
		at = slices.IndexFunc(all, func(e model.Entry) bool { return e.Revision == revision })
	}
	switch {
	case at < 0:
		return model.Entry{}, fmt.Errorf("revision %d: %w: the bucket has %s", revision, model.ErrNotFound, revisions(all))
	case revision == 0 && all[at].Deleted:
		return model.Entry{}, fmt.Errorf("%w: it was removed with revision %d", model.ErrNotFound, all[at].Revision)
	default:
		return all[at], nil
	}
}

// revisions lists the numbers of revisions.
func revisions(all []model.Entry) string {
	numbers := make([]string, len(all))
	for i, e := range all {
		numbers[i] = strconv.FormatUint(e.Revision, 10)
	}

	return strings.Join(numbers, ", ")
}

// Before returns the stored revision before another one. The error wraps
// model.ErrNotFound where there is none.
func Before(all []model.Entry, e model.Entry) (model.Entry, error) {
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
