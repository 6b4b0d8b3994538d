package fleet

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// Precedence compares two assignments of the same name.
type Precedence struct {
	// Other is the key of the other assignment.
	Other string
	// Wins reports whether the nodes run this assignment instead of Other.
	Wins bool
	// Nodes are nodes that both assignments target.
	Nodes []string
}

// PrecedenceOf compares the assignment of a key with others of the same name. It returns at most two results per other
// assignment: one for the nodes on which key wins, one for the nodes on which it does not.
func PrecedenceOf(key string, others []model.Entry, nodes []model.Node) (out []Precedence) {
	t, name, err := ParseKey(key)
	if err != nil {
		return nil
	}
	for _, e := range others {
		other, itsName, err := ParseKey(e.Key)
		if err != nil || itsName != name || e.Key == key {
			continue
		}
		by := map[bool][]string{}
		for i := range nodes {
			if v := newView(&nodes[i]); v.isIn(t) && v.isIn(other) && !v.isUnread(t, key) && !v.isUnread(other, e.Key) {
				wins := v.isAhead(t, other)
				by[wins] = append(by[wins], v.Node.Node)
			}
		}
		for _, wins := range []bool{true, false} {
			if len(by[wins]) > 0 {
				out = append(out, Precedence{Other: e.Key, Wins: wins, Nodes: by[wins]})
			}
		}
	}

	return out
}

// ActiveKeys returns the keys that are active on the nodes on which an assignment of a name to the targets would be active,
// each with these nodes. It returns only keys whose name include accepts.
func ActiveKeys(targets []Target, name string, nodes []model.Node, include func(name string) bool) map[string][]string {
	out := map[string][]string{}
	for _, n := range nodes {
		v := newView(&n)
		if !slices.ContainsFunc(targets, func(t Target) bool { return v.isIn(t) && v.activeAhead(t, name) == "" }) {
			continue
		}
		for key, m := range n.Manifests {
			if t, itsName, err := ParseKey(key); err == nil && include(itsName) && m.Revision > 0 && v.isIn(t) {
				out[key] = append(out[key], n.Node)
			}
		}
	}

	return out
}
