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

// unassigned returns what a node runs without an assignment, by key.
func (a *Assigned) unassigned(n *model.Node) []RolloutStatus {
	var out []RolloutStatus
	for key := range n.Manifests {
		if a.byKey[key] != nil {
			continue
		}
		m := n.Manifests[key]
		if m.Revision == 0 {
			continue
		}
		reason := "runs, but is not assigned"
		if n.Stopped() {
			reason = "ran, but is not assigned"
		}
		if m.Late != "" {
			reason += ": " + late(&m)
		}
		last := m.Last()
		out = append(out, RolloutStatus{Node: n.Node, Key: key, Status: StatusUnassigned, Current: last.Revision, Outcome: last.Outcome, At: last.At, Reason: reason})
	}
	slices.SortFunc(out, func(a, b RolloutStatus) int { return cmp.Compare(a.Key, b.Key) })

	return out
}

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
			if other, _, err := ParseKey(v.running[name]); err != nil || v.isAhead(t, other) {
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

// Tally counts statuses.
type Tally struct {
	All         int `json:"-"`
	Targets     int `json:"targets"`
	UpToDate    int `json:"up_to_date"`
	Failed      int `json:"failed"`
	Rejected    int `json:"rejected"`
	Unreachable int `json:"unreachable"`
	Unreadable  int `json:"unreadable"`
	Pending     int `json:"pending"`
}

// TallyOf returns the counts of statuses.
func TallyOf(statuses []RolloutStatus) Tally {
	var t Tally
	for _, s := range statuses {
		t.Add(s)
	}

	return t
}

// countOf returns the counter of a status, nil if the status is not counted.
func (t *Tally) countOf(s Status) *int {
	switch s {
	case StatusUpToDate:
		return &t.UpToDate
	case StatusFailed:
		return &t.Failed
	case StatusRejected:
		return &t.Rejected
	case StatusUnreachable:
		return &t.Unreachable
	case StatusUnreadable:
		return &t.Unreadable
	case StatusPending:
		return &t.Pending
	default:
		return nil
	}
}

// Counts yields the number of each counted status, the worst status first.
func (t Tally) Counts() iter.Seq2[Status, int] {
	return func(yield func(Status, int) bool) {
		for _, s := range [...]Status{StatusFailed, StatusRejected, StatusPending, StatusUnreachable, StatusUnreadable, StatusUpToDate} {
			if !yield(s, *t.countOf(s)) {
				return
			}
		}
	}
}

// Add counts one status.
func (t *Tally) Add(s RolloutStatus) {
	t.All++
	if s.Applies() {
		t.Targets++
	}
	if count := t.countOf(s.Status); count != nil {
		*count++
	}
}

// AddAll adds the counts of another Tally.
func (t *Tally) AddAll(o Tally) {
	t.All += o.All
	t.Targets += o.Targets
	for s, n := range o.Counts() {
		*t.countOf(s) += n
	}
}

// NotUpToDate returns the number of statuses of nodes that are not up to date.
func (t Tally) NotUpToDate() int { return t.Failed + t.Open() }

// Open returns the number of statuses that are not final.
func (t Tally) Open() int { return t.Rejected + t.Unreachable + t.Unreadable + t.Pending }
