package fleet

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Assigned contains the assignments of a fleet, prepared for comparison with many nodes. It is safe for
// concurrent use.
type Assigned struct {
	byFamily map[string][]*named
	byKey    map[string]*named
	// all are the assignments in the given order.
	all []*named
}

// named is an assignment with its name and target.
type named struct {
	name   string
	target Target
	model.Entry
}

// NewAssigned prepares assignments. It skips keys of other kinds.
func NewAssigned(entries []model.Entry) *Assigned {
	a := &Assigned{byFamily: map[string][]*named{}, byKey: make(map[string]*named, len(entries))}
	for _, e := range entries {
		t, name, err := ParseKey(e.Key)
		if err != nil {
			continue
		}
		n := &named{name, t, e}
		family := t.String()
		a.byFamily[family] = append(a.byFamily[family], n)
		a.byKey[e.Key] = n
		a.all = append(a.all, n)
	}

	return a
}

// All yields the assignments with the names of their manifests, in the given order.
func (a *Assigned) All() iter.Seq2[string, model.Entry] {
	return func(yield func(string, model.Entry) bool) {
		for _, n := range a.all {
			if !yield(n.name, n.Entry) {
				return
			}
		}
	}
}

// Has reports whether a key is assigned.
func (a *Assigned) Has(key string) bool { return a.byKey[key] != nil }

// Assigned returns the time of the newest revision of a key, zero for none.
func (a *Assigned) Assigned(key string) time.Time {
	if n := a.byKey[key]; n != nil {
		return n.Time
	}

	return time.Time{}
}

// placed is an assignment and the index of its family among the families of a node.
type placed struct {
	*named
	place int
}

// Statuses returns the statuses of all assignments on a node, by name and key, then the manifests that it
// runs without an assignment: it ended just now, or the bucket was recreated. A node with an unreadable state
// has none.
func (a *Assigned) Statuses(n model.Node) []RolloutStatus {
	return a.AppendStatuses([]RolloutStatus{}, &n)
}

// AppendStatuses appends the Statuses of a node.
func (a *Assigned) AppendStatuses(out []RolloutStatus, n *model.Node) []RolloutStatus {
	if n.Unreadable != "" {
		return out
	}
	v := newView(n)
	all, unassigned := a.of(&v), a.unassigned(n)
	out = slices.Grow(out, len(all)+len(unassigned))
	for len(all) > 0 {
		same := 1
		for same < len(all) && all[same].name == all[0].name {
			same++
		}
		out = Rollout{}.appendStatuses(out, &v, all[:same])
		all = all[same:]
	}

	return append(out, unassigned...)
}

// of returns the assignments of a node by name, and for one name in the order in which the node considers
// them.
func (a *Assigned) of(v *view) []placed {
	count := 0
	for _, family := range v.families {
		count += len(a.byFamily[family])
	}
	all := make([]placed, 0, count)
	for place, family := range v.families {
		for _, e := range a.byFamily[family] {
			all = append(all, placed{e, place})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.place, b.place)) })

	return all
}

// NeverSeen returns the status of each assignment to an unknown node, in the given order.
func (a *Assigned) NeverSeen(known func(node string) bool) []RolloutStatus {
	var out []RolloutStatus
	for _, e := range a.all {
		if e.target.Node != "" && !known(e.target.Node) {
			out = append(out, RolloutStatus{Node: e.target.Node, Key: e.Key, Status: StatusUnreachable, Desired: e.Revision, Reason: "never seen; is an agent running under this name?"})
		}
	}

	return out
}

// Difference contains the keys in which assignments differ.
type Difference struct{ keys, families map[string]bool }

// Difference returns the keys in which they differ from others.
func (a *Assigned) Difference(others *Assigned) Difference {
	d := Difference{map[string]bool{}, map[string]bool{}}
	note := func(n *named) { d.keys[n.Key], d.families[n.target.String()] = true, true }
	for key, n := range a.byKey {
		if o := others.byKey[key]; o == nil || o.Revision != n.Revision || o.Digest != n.Digest || !o.Time.Equal(n.Time) {
			note(n)
		}
	}
	for key, o := range others.byKey {
		if a.byKey[key] == nil {
			note(o)
		}
	}

	return d
}

// IsEmpty reports whether there is no difference.
func (d Difference) IsEmpty() bool { return len(d.keys) == 0 }

// Concerns reports whether the difference affects the statuses of a node.
func (d Difference) Concerns(n model.Node) bool {
	for _, family := range model.Families(n.Node, n.Groups) {
		if d.families[family] {
			return true
		}
	}
	for key := range n.Manifests {
		if d.keys[key] {
			return true
		}
	}

	return false
}
