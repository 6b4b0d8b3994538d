package fleet

import "github.com/musterfleet/muster/model"

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
