package view

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// inventory are the nodes of a fleet, compared with its assignments. They are safe for concurrent use. Do not
// change returned values.
type inventory struct {
	options Options
	// changed is called after a change that readers see. It must not call back.
	changed func()
	// selector evaluates expressions of users, reported evaluates states of nodes.
	selector, reported *targetEvaluator

	mu    sync.RWMutex
	nodes nodeTable
	// listed means that all nodes are known, isAssigned that all assignments are known.
	listed, isAssigned bool
	entries            *fleet.Assigned
	// statuses are the statuses of the last node. The next node reuses their memory.
	statuses []fleet.RolloutStatus
	// gaps are the periods without data, blind are the reasons for the current gap.
	gaps  gaps
	blind map[string]bool
}

func newInventory(o Options, changed func()) *inventory {
	return &inventory{
		options: o, changed: changed, selector: newTargetEvaluator(targetPatience, factsPatience, false),
		// Expressions of nodes do not delay expressions of users, and each takes little time at long intervals.
		reported: newTargetEvaluator(reportedPatience, reportedFactsPatience, true),
		entries:  fleet.NewAssigned(nil), blind: map[string]bool{},
	}
}

// completeNodes reports whether the states of all nodes and all assignments are known, and the time since which no data
// about nodes arrives, zero if data arrives.
func (a *inventory) completeNodes() (all bool, blindSince time.Time) {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.listed && a.isAssigned, a.gaps.since()
}

// IsKnown reports whether a node exists.
func (a *inventory) IsKnown(name string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return a.nodes.get(name) != nil
}

// now returns the nodes by name and the current assignments.
func (a *inventory) now() (nodeTable, *fleet.Assigned) {
	a.mu.RLock()
	defer a.mu.RUnlock()

	return slices.Clone(a.nodes), a.entries
}

// NodeQuery selects and sorts nodes. Empty fields select all.
type NodeQuery struct {
	// On is a target expression (targets.Compile), Search a part of a name, a host, a
	// group or a label, State a fleet.NodeStatus.
	On     string
	Search string
	State  fleet.Status
	// Sort is one of name, state, since, heard, version, host; empty is name.
	Sort       string
	Descending bool
	Offset     int
	// Limit is the maximum number of rows, 0 for 100.
	Limit int
}

// NodeRow is a node in a list.
type NodeRow struct {
	Node    string            `json:"node"`
	Host    string            `json:"host"`
	State   fleet.Status      `json:"state"`
	Since   time.Time         `json:"since,omitzero"`
	Heard   time.Time         `json:"heard,omitzero"`
	Version string            `json:"version"`
	Groups  []string          `json:"groups"`
	Labels  map[string]string `json:"labels"`
	Tally   fleet.Tally       `json:"manifests"`
	// Reason is the reason why the node is not OK, empty if it is.
	Reason string `json:"reason,omitempty"`
	Outbox int    `json:"outbox"`
}

// ManifestQuery selects the nodes of a manifest.
type ManifestQuery struct {
	Name string
	// Status selects nodes by the status of the manifest. If it is empty, it selects all nodes of the
	// manifest.
	Status fleet.Status
	Offset int
	// Limit is the maximum number of nodes, 0 for 100.
	Limit int
}

// Node is the data of one node.
type Node struct {
	model.Node
	// State is its fleet.NodeStatus.
	State fleet.Status `json:"state"`
	// Since is the last update of an unreachable or stopped node, the time of the oldest pending or rejected
	// revision, or the first of the consecutive failed runs. For older agents it is the end of the last
	// failed run. Otherwise it is zero.
	Since    time.Time    `json:"since,omitzero"`
	Statuses []Assignment `json:"statuses"`
	// OmittedManifests is the number of reported manifests that are neither assigned nor listed, because
	// their number is limited.
	OmittedManifests int `json:"omitted_manifests,omitempty"`
}

// Assignment is the status of an assignment on a node.
type Assignment struct {
	fleet.RolloutStatus
	// Assigned is the time of the desired revision, zero if there is none.
	Assigned time.Time `json:"assigned,omitzero"`
	// FailedSince is the time of the first of the consecutive failures. It is zero if it does not fail or an
	// older agent does not report it.
	FailedSince time.Time `json:"failed_since,omitzero"`
}

// Began returns the time since which it is late or fails, zero for neither or if unknown.
func (a Assignment) Began() time.Time {
	if a.Late() {
		return a.Assigned
	}

	return a.FailedSince
}

// Late reports whether the node should run the revision but does not. An unreachable or stopped node is not
// late for the revision that it ran.
func (a Assignment) Late() bool {
	if a.Status == fleet.StatusUnreachable && a.Current == a.Desired && a.Outcome != "" {
		return false
	}

	return !a.Done() && a.Status != fleet.StatusUnassigned
}

// NewNode returns the data of a node with the statuses of its assignments, see fleet.Assigned.
func NewNode(n model.Node, statuses []fleet.RolloutStatus, all *fleet.Assigned) Node {
	out := Node{Node: n, State: fleet.NodeStatus(n, statuses), Statuses: make([]Assignment, len(statuses))}
	for i, s := range statuses {
		out.Statuses[i] = Assignment{RolloutStatus: s, Assigned: all.Assigned(s.Key)}
		if s.Status == fleet.StatusFailed {
			out.Statuses[i].FailedSince = n.Manifests[s.Key].FailedSince
		}
	}
	out.Since = out.since()

	return out
}

// BeganAt reports whether Since is the beginning of the state. Older agents do not report since when they
// fail.
func (n *Node) BeganAt() bool {
	return n.State != fleet.StatusFailed || !slices.ContainsFunc(n.Statuses, func(s Assignment) bool {
		return s.Status == fleet.StatusFailed && n.Manifests[s.Key].FailedSince.IsZero()
	})
}

// since returns Since.
func (n *Node) since() time.Time {
	switch n.State {
	case fleet.StatusUnreadable, fleet.StatusStopped, fleet.StatusUnreachable:
		return n.Heard
	case fleet.StatusPaused:
		return n.Paused.At
	}
	var since time.Time
	if n.State != fleet.StatusFailed && n.State != fleet.StatusRejected && n.State != fleet.StatusPending {
		return since
	}
	for _, s := range n.Statuses {
		at := cmp.Or(n.Manifests[s.Key].FailedSince, s.At)
		if s.Late() {
			at = s.Assigned
		}
		if s.Status == n.State && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}

	return since
}

// nodeTable contains the nodes, sorted by name.
type nodeTable []*nodeState

func (t nodeTable) find(name string) (int, bool) {
	return slices.BinarySearchFunc(t, name, func(s *nodeState, name string) int { return strings.Compare(s.name(), name) })
}

// get returns a node, nil for an unknown one.
func (t nodeTable) get(name string) *nodeState {
	if at, is := t.find(name); is {
		return t[at]
	}

	return nil
}

func (t *nodeTable) set(s *nodeState) {
	at, is := t.find(s.name())
	if is {
		(*t)[at] = s
	} else {
		*t = slices.Insert(*t, at, s)
	}
}

func (t *nodeTable) remove(name string) {
	if at, is := t.find(name); is {
		*t = slices.Delete(*t, at, at+1)
	}
}

// SetNodes sets the states of all nodes and takes ownership of them. asked is the time of the request: states
// that arrived later stay.
func (f *Fleet) SetNodes(asked time.Time, all []model.Node) {
	a, removed := f.inventory, []string(nil)
	defer func() { f.forget(removed...) }() // without the lock of the nodes
	a.mu.Lock()
	defer a.mu.Unlock()
	listed := make(map[string]bool, len(all))
	for _, n := range all {
		listed[n.Node] = true
		if k := a.nodes.get(n.Node); k == nil || k.received.Before(asked) {
			a.setNode(n)
		}
	}
	a.nodes = slices.DeleteFunc(a.nodes, func(s *nodeState) bool {
		isGone := !listed[s.name()] && s.received.Before(asked)
		if isGone {
			removed = append(removed, s.name())
		}

		return isGone
	})
	a.listed = true
	a.changed()
}

// SetNode sets the state of a node and takes ownership of it.
func (a *inventory) SetNode(n model.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setNode(n)
	a.changed()
}

// RemoveNode removes a node.
func (f *Fleet) RemoveNode(name string) {
	defer f.forget(name) // without the lock of the nodes
	a := f.inventory
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes.remove(name)
	a.changed()
}

// All yields the known nodes by name, without their manifests.
func (a *inventory) All() iter.Seq[*model.Node] {
	all, _ := a.now()

	return func(yield func(*model.Node) bool) {
		for _, n := range all {
			if !yield(&n.Node.Node) {
				return
			}
		}
	}
}

func (a *inventory) setNode(n model.Node) {
	now := time.Now()
	n = compact(n)
	n.Silent = a.gaps.isSilent(n, now)
	a.nodes.set(a.judge(n, compactManifests(n.Manifests), 0, now))
}

// judge compares a node with its assignments. It expects the Manifests of the node in both forms, and the number of
// manifests that earlier calls removed.
func (a *inventory) judge(n model.Node, manifests []manifestState, omitted int, received time.Time) *nodeState {
	manifests, more := a.cut(&n, manifests)
	a.statuses = a.entries.AppendStatuses(a.statuses[:0], &n)
	out := &nodeState{NewNode(n, a.statuses, a.entries), manifests, received}
	out.Node.Manifests, out.OmittedManifests = nil, omitted+more

	return out
}

// silence finds silent nodes.
func (a *inventory) silence(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	manifests := map[string]model.ManifestState{}
	for i, k := range a.nodes {
		if !k.Silent && a.gaps.isSilent(k.Node.Node, now) {
			n := k.reported(manifests)
			n.Silent = true
			a.nodes[i] = a.judge(n, k.manifests, k.OmittedManifests, k.received)
			a.changed()
		}
	}
}

// SetAssignments sets the assignments.
func (a *inventory) SetAssignments(entries []model.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := fleet.NewAssigned(entries)
	changed := all.Difference(a.entries)
	a.entries = all
	if a.isAssigned && changed.IsEmpty() {
		return
	}
	first := !a.isAssigned
	a.isAssigned = true
	manifests := map[string]model.ManifestState{}
	for i, k := range a.nodes {
		if n := k.reported(manifests); first || changed.Concerns(n) {
			a.nodes[i] = a.judge(n, k.manifests, k.OmittedManifests, k.received)
		}
	}
	a.changed()
}

// pageOf returns the requested part of a list.
func pageOf[T any](all []T, offset, limit int) []T {
	offset = min(max(offset, 0), len(all))

	return all[offset:min(offset+limitOf(limit), len(all))]
}

// Nodes returns a page of nodes. The error is the error of the target expression, a *targets.Error, or of
// reading the facts that it needs.
func (f *Fleet) Nodes(q NodeQuery) (NodePage, error) {
	progress := f.Progress() // before the nodes are read
	all, found, err := f.matching(q.On)
	if err != nil {
		return NodePage{}, err
	}
	out := NodePage{Progress: progress, Known: found.known, Rows: []NodeRow{}}
	out.Undecided, out.Warnings = append([]targets.Undecided{}, found.undecided...), append([]string{}, found.warnings...)
	if search := strings.ToLower(q.Search); search != "" {
		all = slices.DeleteFunc(all, func(n *nodeState) bool { return !isFound(&n.Node, search) })
	}
	out.States = statesOf(all)
	if q.State != "" {
		all = slices.DeleteFunc(all, func(n *nodeState) bool { return n.State != q.State })
	}
	out.Matching = len(all)
	if compare := orderOf(q.Sort); compare != nil {
		slices.SortStableFunc(all, compare)
	}
	if q.Descending {
		slices.Reverse(all)
	}
	for _, n := range pageOf(all, q.Offset, q.Limit) {
		out.Rows = append(out.Rows, RowOf(&n.Node))
	}

	return out, nil
}

// matching returns the nodes that a target expression selects, all for an empty one.
func (a *inventory) matching(on string) (all nodeTable, found targetResult, err error) {
	all, _ = a.now()
	known := len(all)
	if on != "" {
		if found, err = a.selectNodes(a.selector, on, all); err != nil {
			return nil, found, err
		}
		all = slices.DeleteFunc(all, func(n *nodeState) bool { return !found.matches[n.name()] })
	}
	found.known = known

	return all, found, nil
}

// statesOf counts nodes, which are sorted by name, by state.
func statesOf(all []*nodeState) []State {
	c := counter{byStatus: map[fleet.Status]*State{}}
	for _, n := range all {
		c.state(&n.Node)
	}

	return c.states()
}

// isFound reports whether a text in lower case is a part of a name, host, group or label of a node.
func isFound(n *Node, search string) bool {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), search) }
	if has(n.Node.Node) || has(n.Host) || slices.ContainsFunc(n.Groups, has) {
		return true
	}
	for key, value := range n.Labels {
		if has(key + "=" + value) {
			return true
		}
	}

	return false
}

// orderOf returns the comparison of nodes by a column, nil for names, which are sorted already.
func orderOf(column string) func(a, b *nodeState) int {
	switch column {
	case "state":
		return func(a, b *nodeState) int { return cmp.Compare(Severity(a.State), Severity(b.State)) }
	case "since":
		return func(a, b *nodeState) int { return a.Since.Compare(b.Since) }
	case "heard":
		return func(a, b *nodeState) int { return a.Heard.Compare(b.Heard) }
	case "version":
		return func(a, b *nodeState) int { return compareVersions(a.Version, b.Version) }
	case "host":
		return func(a, b *nodeState) int { return cmp.Compare(a.Host, b.Host) }
	default:
		return nil
	}
}

// RowOf returns a node as a row of a list.
func RowOf(n *Node) NodeRow {
	statuses := rolloutsOf(n)

	return NodeRow{
		Node: n.Node.Node, Host: n.Host, State: n.State, Since: n.Since, Heard: n.Heard, Version: n.Version, Groups: n.Groups, Labels: n.Labels,
		Tally: fleet.TallyOf(statuses), Reason: fleet.WhyNot(n.Node, statuses), Outbox: n.Outbox,
	}
}

// rolloutsOf returns the statuses of a node in the type of package fleet.
func rolloutsOf(n *Node) []fleet.RolloutStatus {
	out := make([]fleet.RolloutStatus, len(n.Statuses))
	for i, s := range n.Statuses {
		out[i] = s.RolloutStatus
	}

	return out
}

// node returns the data of a node, and whether it is known.
func (a *inventory) node(name string) (Node, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	k := a.nodes.get(name)
	if k == nil {
		return Node{}, false
	}

	return k.full(), true
}

// Select returns the nodes that a target expression selects, all for an empty one, without their Manifests.
// It returns the errors of Nodes.
func (a *inventory) Select(on string) (targets.Selection, error) {
	all, found, err := a.matching(on)
	if err != nil {
		return targets.Selection{}, err
	}
	out := targets.Selection{Known: found.known, Undecided: found.undecided, Warnings: found.warnings, Nodes: make([]model.Node, len(all))}
	for i, n := range all {
		out.Nodes[i] = n.Node.Node
	}

	return out, nil
}

// reportedTargets returns the sorted names of the nodes that reported targets or a reported target expression
// select. Named nodes may be unknown. It returns the errors of Select. The selection of an expression may be
// half a minute old.
func (a *inventory) reportedTargets(targets, on string) ([]string, error) {
	all, _ := a.now()
	if on != "" {
		found, err := a.selectNodes(a.reported, on, all)

		return slices.Sorted(maps.Keys(found.matches)), err
	}
	var out []string
	for _, t := range fleet.SplitTargets(targets) {
		if t.Node != "" {
			out = append(out, t.Node)
			continue
		}
		for _, n := range all {
			if t.Includes(n.NodeState) {
				out = append(out, n.name())
			}
		}
	}
	slices.Sort(out)

	return slices.Compact(out), nil
}

// State returns the state of a node, and whether it is known.
func (a *inventory) State(name string) (model.Node, bool) {
	n, is := a.node(name)

	return n.Node, is
}

// summary returns the overview of the nodes. It marks nodes with an earlier version than the given one.
func (a *inventory) summary(version string, now time.Time) Summary {
	all, entries := a.now()
	c := newCounter(entries)
	for _, s := range all {
		c.node(&s.Node, s.manifest)
	}

	return c.summary(entries, version, now)
}

// assignments returns a page of the statuses of a manifest, the worst first, and their number.
func (a *inventory) assignments(q ManifestQuery) (rows []Assignment, matching int) {
	nodes, entries := a.now()
	var found []*Assignment
	add := func(a *Assignment) {
		if model.IsKeyOf(a.Key, q.Name) && (q.Status == "" && a.Applies() || q.Status == a.Status) {
			found = append(found, a)
		}
	}
	for _, n := range nodes {
		for i := range n.Statuses {
			add(&n.Statuses[i])
		}
	}
	for _, s := range entries.NeverSeen(func(node string) bool { return nodes.get(node) != nil }) {
		add(&Assignment{RolloutStatus: s, Assigned: entries.Assigned(s.Key)})
	}
	slices.SortStableFunc(found, func(a, b *Assignment) int {
		return cmp.Or(cmp.Compare(assignmentSeverity(a.Status), assignmentSeverity(b.Status)), cmp.Compare(a.Node, b.Node))
	})
	rows = []Assignment{}
	for _, one := range pageOf(found, q.Offset, q.Limit) {
		rows = append(rows, *one)
	}

	return rows, len(found)
}

// assignmentSeverity orders the statuses of an assignment, the worst first.
func assignmentSeverity(s fleet.Status) int {
	order := [...]fleet.Status{
		fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusUnassigned,
		fleet.StatusUpToDate, fleet.StatusNotApplicable, fleet.StatusOverridden,
	}

	return slices.Index(order[:], s)
}

// maxGaps limits the stored gaps; older gaps are dropped.
const maxGaps = 32

// gap is a period without data about nodes. to is zero during the gap.
type gap struct{ from, to time.Time }

// gaps are the periods without data, oldest first. They do not count towards the silence of a node.
type gaps []gap

// begin begins a gap, unless one lasts.
func (g gaps) begin(at time.Time) gaps {
	if g.since().IsZero() {
		g = append(g, gap{from: at})
	}

	return g[max(len(g)-maxGaps, 0):]
}

// end ends the current gap, if any.
func (g gaps) end(at time.Time) {
	if !g.since().IsZero() {
		g[len(g)-1].to = at
	}
}

// since returns the beginning of the current gap, zero if there is none.
func (g gaps) since() time.Time {
	if len(g) == 0 || !g[len(g)-1].to.IsZero() {
		return time.Time{}
	}

	return g[len(g)-1].from
}

// isSilent reports whether a node was silent for too long. Gaps after its last update do not count.
func (g gaps) isSilent(n model.Node, now time.Time) bool {
	for _, one := range g {
		to := one.to
		if to.IsZero() {
			to = now
		}
		if n.Heard.Before(one.from) && to.After(one.from) {
			now = now.Add(-to.Sub(one.from))
		}
	}

	return n.IsSilent(now)
}

// Blind records a reason why no data about nodes has arrived since a time. No node becomes unreachable until
// Sees has removed every reason.
func (a *inventory) Blind(reason string, since time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blind[reason] {
		return
	}
	a.blind[reason] = true
	a.gaps = a.gaps.begin(since)
	a.changed()
}

// Sees removes a reason that Blind recorded.
func (a *inventory) Sees(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.blind[reason] {
		return
	}
	delete(a.blind, reason)
	if len(a.blind) == 0 {
		a.gaps.end(time.Now())
	}
	a.changed()
}
