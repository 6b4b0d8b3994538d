package desired

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterfleet/muster/resources/engine/plan"
)

type candidate struct {
	unit    *unit
	rank    int
	version *Version
	rest    []*unit
}

// compare orders candidates in run order: by family, priority and name.
func (c candidate) compare(other candidate) int {
	return cmp.Or(cmp.Compare(c.rank, other.rank), cmp.Compare(c.version.Priority, other.version.Priority), cmp.Compare(c.unit.name, other.unit.name))
}

// seniority returns 0 for an active version, 1 for another version of an active name, and 2 for a new name.
// held are the active units by name.
func (c candidate) seniority(held map[string]*unit) int {
	switch u := held[c.unit.name]; {
	case u == nil:
		return 2
	case u == c.unit && (u.active == nil && sameEntry(*u.record.Good, c.version.Entry) || c.version.sameAs(u.active)):
		return 0
	default:
		return 1
	}
}

// byPrecedence returns the units of each name by precedence of their families: the node's own family, its
// groups, and all.
func byPrecedence(units map[string]*unit, families []string) map[string][]*unit {
	out := map[string][]*unit{}
	for _, u := range units {
		out[u.name] = append(out[u.name], u)
	}
	for _, same := range out {
		slices.SortFunc(same, func(a, b *unit) int {
			return cmp.Compare(slices.Index(families, a.family), slices.Index(families, b.family))
		})
	}

	return out
}

// selectAssignment returns the first version that can run among the units of a name, and the remaining units.
// A unit that never had a good version does not replace an active one. resolve returns the version of a unit,
// nil for none, and whether the unit concerns this node.
func selectAssignment(same []*unit, resolve func(*unit) (v *Version, assigned bool)) (u *unit, v *Version, rest []*unit) {
	for i, u := range same {
		v, assigned := resolve(u)
		switch {
		case assigned && v != nil:
			return u, v, same[i+1:]
		case assigned && u.record.Good != nil:
			return nil, nil, nil
		}
	}

	return nil, nil, nil
}

// admit returns the candidates that declare no resource differently than an earlier one, in run order. Active
// manifests come first, then their changes, then new manifests: in a conflict, the later one is replaced by
// its fallback. A fallback may be an active version, which comes first and may conflict with accepted
// candidates, so the search starts again.
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

// firstConflict returns the first candidate that declares a resource differently than an earlier one, -1 for
// none.
func firstConflict(candidates []candidate) int {
	taken := plan.Claims{}
	for i, c := range candidates {
		if len(taken.Conflicts(c.version.Resolution.Resources)) > 0 {
			return i
		}
		taken.Add(c.unit.key, c.version.Resolution.Resources)
	}

	return -1
}

// fallback returns the replacement of a candidate in conflict: the last good version of its key, otherwise
// the next key of its name.
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

// decline rejects a candidate that conflicts with an admitted one. If the other one is no longer admitted, it
// admits the candidate.
func (t *turn) decline(ctx context.Context, c candidate, admitted []candidate) []candidate {
	others := slices.DeleteFunc(slices.Clone(admitted), func(other candidate) bool { return other.unit.name == c.unit.name })
	taken := plan.Claims{}
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

// inForce returns the active unit of each name, or the unit that was active before a restart.
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
