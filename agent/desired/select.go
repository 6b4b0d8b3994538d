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
	// rest are the units of the name that come after it.
	rest []*unit
}

// compare orders candidates as they run: by family, priority and name.
func (c candidate) compare(other candidate) int {
	return cmp.Or(cmp.Compare(c.rank, other.rank), cmp.Compare(c.version.Priority, other.version.Priority), cmp.Compare(c.unit.name, other.unit.name))
}

// seniority returns 0 for a version in force, 1 for another one of a name that is
// in force, and 2 for a newcomer. held are the units in force, by name.
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

// byPrecedence returns the units of each name, those that win first: of families
// in their order, which is the node's own, its groups, and all.
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

// selectAssignment returns the version of the first of the units of a name that
// has one to run, and the units after it. One that never had a good version takes
// nothing out of force. resolve returns the version of a unit, nil when there is
// none, and whether the unit concerns this node.
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
