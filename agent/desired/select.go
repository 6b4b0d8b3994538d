package desired

import (
	"cmp"
	"slices"
)

// candidate is a version that may become active.
type candidate struct {
	unit    *unit
	rank    int
	version *Version
	// rest are the following units of the name.
	rest []*unit
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
