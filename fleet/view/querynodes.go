package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"

	"github.com/musterfleet/muster/model"
)

// pageOf returns the requested part of a list.
func pageOf[T any](all []T, offset, limit int) []T {
	if limit <= 0 {
		limit = defaultLimit
	}
	offset = min(max(offset, 0), len(all))

	return all[offset:min(offset+min(limit, maxLimit), len(all))]
}

// List returns a page of the nodes. The error is the error of the target expression, a *targets.Error, or of
// reading the facts that it needs.
func (a *inventory) List(q NodeQuery) (nodeList, error) {
	all, _ := a.now()
	out := nodeList{Known: len(all), Rows: []NodeRow{}, Undecided: []targets.Undecided{}, Warnings: []string{}}
	if q.On != "" {
		found, err := a.selectNodes(a.selector, q.On, all)
		if err != nil {
			return nodeList{}, err
		}
		all = slices.DeleteFunc(all, func(n *nodeState) bool { return !found.matches[n.name()] })
		out.Undecided = append(out.Undecided, found.undecided...)
		out.Warnings = append(out.Warnings, found.warnings...)
	}
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

// statesOf counts nodes by state.
func statesOf(all []*nodeState) []State {
	return statesFrom(func(yield func(*Node) bool) {
		for _, n := range all {
			if !yield(&n.Node) {
				return
			}
		}
	})
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
		return func(a, b *nodeState) int {
			return cmp.Compare(Severity(a.State), Severity(b.State))
		}
	case "since":
		return func(a, b *nodeState) int { return a.Since.Compare(b.Since) }
	case "heard":
		return func(a, b *nodeState) int { return a.Heard.Compare(b.Heard) }
	case "version":
		return func(a, b *nodeState) int {
			switch {
			case IsOlder(a.Version, b.Version):
				return -1
			case IsOlder(b.Version, a.Version):
				return 1
			default:
				return cmp.Compare(a.Version, b.Version)
			}
		}
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

// Node returns the data of a node, and whether it is known.
func (a *inventory) Node(name string) (Node, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	k := a.nodes.byName[name]
	if k == nil {
		return Node{}, false
	}

	return k.full(), true
}

// Select returns the nodes that a target expression selects, all for an empty one, without their Manifests.
// It returns the errors of List.
func (a *inventory) Select(on string) (targets.Selection, error) {
	all, _ := a.now()
	out := targets.Selection{Known: len(all)}
	var found targetResult
	if on != "" {
		var err error
		if found, err = a.selectNodes(a.selector, on, all); err != nil {
			return targets.Selection{}, err
		}
		out.Undecided, out.Warnings = found.undecided, found.warnings
	}
	count := len(all)
	if on != "" {
		count = len(found.matches)
	}
	out.Nodes = make([]model.Node, 0, count) // growing would copy all states repeatedly
	for _, n := range all {
		if on == "" || found.matches[n.name()] {
			out.Nodes = append(out.Nodes, n.Node.Node)
		}
	}

	return out, nil
}

// ReportedTargets returns the sorted names of the nodes that reported targets or a reported target expression
// select. Named nodes may be unknown. It returns the errors of Select. The selection of an expression may be
// half a minute old.
func (a *inventory) ReportedTargets(targets, on string) ([]string, error) {
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
	n, is := a.Node(name)

	return n.Node, is
}
