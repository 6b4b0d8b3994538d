package assign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// FindRevision returns a stored revision of an assignment, or the newest for 0. all is sorted. The error
// wraps model.ErrNotFound and lists the existing revisions. If the assignment was removed, the newest is not
// found.
func FindRevision(all []model.Entry, revision uint64) (model.Entry, error) {
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

// RevisionBefore returns the stored revision before another one. The error wraps model.ErrNotFound if there
// is none.
func RevisionBefore(all []model.Entry, e model.Entry) (model.Entry, error) {
	at := slices.IndexFunc(all, func(o model.Entry) bool { return o.Revision == e.Revision })
	if at < 1 {
		return model.Entry{}, fmt.Errorf("revision %d of %s: no revision before it: %w", e.Revision, e.Key, model.ErrNotFound)
	}

	return all[at-1], nil
}

// RollbackTo returns the revision to assign again: a stored one, or for 0 the last revision with another
// content than the current one, if possible a preferred one. prefer may be nil. The error wraps
// model.ErrNotFound if there is none.
func RollbackTo(all []model.Entry, revision uint64, preferred func(model.Entry) bool) (model.Entry, error) {
	if revision != 0 {
		e, err := FindRevision(all, revision)
		if err == nil && e.Deleted {
			err = fmt.Errorf("revision %d removed the assignment", revision)
		}
		return e, err
	}
	now := all[len(all)-1]
	earlier := slices.DeleteFunc(slices.Clone(all[:len(all)-1]), func(e model.Entry) bool { return e.Deleted || e.Refused != "" })
	var others []model.Entry
	for _, e := range slices.Backward(earlier) {
		if now.Deleted || !sameContent(e.Key, e.Value, now.Value) {
			others = append(others, e)
		}
	}
	if at := slices.IndexFunc(others, func(e model.Entry) bool { return preferred != nil && preferred(e) }); at >= 0 {
		return others[at], nil
	}
	if len(others) > 0 {
		return others[0], nil
	}
	if len(earlier) == 0 {
		return model.Entry{}, fmt.Errorf("%w: there is no earlier revision than %d", model.ErrNotFound, all[len(all)-1].Revision)
	}

	return model.Entry{}, fmt.Errorf("%w: no earlier revision differs; give --to N: %s", model.ErrNotFound, revisions(earlier))
}
