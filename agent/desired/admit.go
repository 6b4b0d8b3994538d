package desired

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterfleet/muster/resources/engine/graph"
)

// admit returns the candidates that declare no resource differently than another,
// in the order in which they run. A manifest in force comes before a change of
// one, and that before a newcomer: of two that conflict, the later is replaced by its
// fallback. That may be a version in force, which comes before candidates that did not
// conflict so far, so conflicts are looked for again from the first.
func (t *turn) admit(ctx context.Context, candidates []candidate) []candidate {
	held := t.inForce()
	var declined []candidate
	for {
		slices.SortFunc(candidates, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.seniority(held), b.seniority(held)), a.compare(b))
		})
		i := firstConflict(candidates)
		if i < 0 {
			break
		}
		c := candidates[i]
		declined = append(declined, c)
		candidates = slices.Delete(candidates, i, i+1)
		if next, ok := t.fallback(ctx, c); ok {
			candidates = append(candidates, next)
		}
	}
	for _, c := range declined {
		candidates = t.decline(ctx, c, candidates)
	}
	slices.SortFunc(candidates, candidate.compare)

	return candidates
}

// firstConflict returns the first candidate that declares a resource differently
// than one before it, -1 for none.
func firstConflict(candidates []candidate) int {
	taken := graph.Claims{}
	for i, c := range candidates {
		if len(taken.Conflicts(c.version.Resolution.Resources)) > 0 {
			return i
		}
		taken.Add(c.unit.key, c.version.Resolution.Resources)
	}

	return -1
}

// fallback returns what replaces a candidate in conflict: the last good version of
// its key, or where it has none, the next key of its name.
func (t *turn) fallback(ctx context.Context, c candidate) (candidate, bool) {
	good := c.unit.record.Good
	if good == nil {
		return t.selectOf(ctx, c.rest)
	}
	if sameEntry(*good, c.version.Entry) {
		return candidate{}, false
	}
	v, holds, err := t.resolveEntry(ctx, c.unit, *good)
	c.version = v

	return c, err == nil && holds
}

// decline rejects a candidate that conflicts with those that are admitted. When
// what it conflicted with is not among them, it is admitted after all.
func (t *turn) decline(ctx context.Context, c candidate, admitted []candidate) []candidate {
	others := slices.DeleteFunc(slices.Clone(admitted), func(other candidate) bool { return other.unit.name == c.unit.name })
	taken := graph.Claims{}
	for _, other := range others {
		taken.Add(other.unit.key, other.version.Resolution.Resources)
	}
	problems := taken.Conflicts(c.version.Resolution.Resources)
	if len(problems) == 0 {
		return append(others, c)
	}
	why := t.handleInvalid(ctx, c.unit, c.version.Entry, problems)
	if c.unit.isNewest(c.version.Entry) {
		c.unit.late = why
	}

	return admitted
}

// inForce returns the unit of each name that is in force, or that was before a
// restart.
func (t *turn) inForce() map[string]*unit {
	held := map[string]*unit{}
	for _, u := range t.order {
		held[u.name] = u
	}
	if len(held) > 0 {
		return held
	}
	for name, same := range byPrecedence(t.units, t.in.Families) {
		if i := slices.IndexFunc(same, func(u *unit) bool { return u.record.Good != nil }); i >= 0 {
			held[name] = same[i]
		}
	}

	return held
}
