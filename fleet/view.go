package fleet

import "github.com/musterfleet/muster/model"

// view is a node with prepared lookups of its state. A node writes its state, so the cost of a command must
// stay linear in it.
type view struct {
	*model.Node
	// families are the families of its keys by precedence. places contains their indexes by name, after the
	// first lookup.
	families []string
	places   map[string]int
	// running are the keys that it runs and that target it, by name; the key with the highest precedence
	// wins; see active.
	running map[string]string
	// unread are the targets that the node could not read at its last attempt.
	unread map[Target]bool
}

func newView(n *model.Node) view {
	v := view{Node: n, families: model.Families(n.Node, n.Groups)}
	if len(n.UnreadGroups) > 0 {
		v.unread = make(map[Target]bool, len(n.UnreadGroups))
		for _, g := range n.UnreadGroups {
			v.unread[Target{Group: g}] = true
		}
	}

	return v
}

// isUnread reports whether the node cannot run the assignment of a key, because it never read it and could not read
// its target at the last attempt.
func (v *view) isUnread(t Target, key string) bool {
	if !v.unread[t] {
		return false
	}
	m := v.Manifests[key]

	return m.Revision == 0 && m.Seen == 0
}

// place returns the index of a target among the families of the node, and whether it is one of them.
func (v *view) place(t Target) (place int, is bool) {
	if v.places == nil {
		v.places = make(map[string]int, len(v.families))
		for i, family := range v.families {
			v.places[family] = i
		}
	}
	place, is = v.places[t.String()]

	return place, is
}

// active returns the key of a name that the node runs and that targets it. It searches the state of the node
// at the first call, which is rare.
func (v *view) active(name string) string {
	if v.running == nil {
		v.running = map[string]string{}
		for key, m := range v.Manifests {
			t, name, err := ParseKey(key)
			if err != nil || m.Revision == 0 || !v.isIn(t) {
				continue
			}
			if other, ok := v.running[name]; !ok || v.wins(t, other) {
				v.running[name] = key
			}
		}
	}

	return v.running[name]
}

// isIn reports whether the node is the target, or in its group.
func (v *view) isIn(t Target) bool {
	_, is := v.place(t)

	return is
}

// wins reports whether a target takes precedence over a key of the same name.
func (v *view) wins(t Target, key string) bool {
	other, _, _ := ParseKey(key)

	return v.isAhead(t, other)
}

// isAhead reports whether a target takes precedence over another.
func (v *view) isAhead(t, other Target) bool {
	place, _ := v.place(t)
	others, _ := v.place(other)

	return place < others
}

// activeAhead returns the key of a name that the node runs from a target with precedence over t, empty for
// none.
func (v *view) activeAhead(t Target, name string) string {
	key := v.active(name)
	if other, _, err := ParseKey(key); err != nil || !v.isAhead(other, t) {
		return ""
	}

	return key
}
