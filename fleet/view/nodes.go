package view

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/model"
)

// tableNode is a node in the table.
type tableNode struct {
	*nodeState
	// since is the time of the report.
	since time.Time
}

// nodeTable contains the nodes by name, and sorted by name.
type nodeTable struct {
	byName map[string]*tableNode
	sorted []*tableNode
}

func newNodeTable() nodeTable { return nodeTable{byName: map[string]*tableNode{}} }

func (t *nodeTable) set(s *nodeState, since time.Time) {
	name := s.name()
	if k := t.byName[name]; k != nil {
		k.nodeState, k.since = s, since
		return
	}
	k := &tableNode{s, since}
	t.byName[name] = k
	at, _ := t.find(name)
	t.sorted = slices.Insert(t.sorted, at, k)
}

func (t *nodeTable) remove(name string) {
	if at, found := t.find(name); found {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
	delete(t.byName, name)
}

func (t *nodeTable) find(name string) (int, bool) {
	return slices.BinarySearchFunc(t.sorted, name, func(k *tableNode, name string) int { return strings.Compare(k.name(), name) })
}

// all returns the nodes by name.
func (t *nodeTable) all() []*nodeState {
	out := make([]*nodeState, len(t.sorted))
	for i, k := range t.sorted {
		out[i] = k.nodeState
	}

	return out
}

// SetNodes sets all nodes as of the time of the request and takes ownership of them. Newer states of nodes
// stay. It returns the removed nodes.
func (a *inventory) SetNodes(asked time.Time, all []model.Node) (removed []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	listed := make(map[string]bool, len(all))
	for _, n := range all {
		listed[n.Node] = true
		if k := a.nodes.byName[n.Node]; k == nil || k.since.Before(asked) {
			a.setNode(n)
		}
	}
	for _, k := range slices.Clone(a.nodes.sorted) {
		if name := k.name(); !listed[name] && k.since.Before(asked) {
			a.nodes.remove(name)
			removed = append(removed, name)
		}
	}
	a.listed = true
	a.options.Changed()

	return removed
}

// SetNode sets the state of a node and takes ownership of it.
func (a *inventory) SetNode(n model.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setNode(n)
	a.options.Changed()
}

// RemoveNode removes a node.
func (a *inventory) RemoveNode(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes.remove(name)
	a.options.Changed()
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

// NodeNames returns the sorted names of the nodes.
func (a *inventory) NodeNames() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := make([]string, len(a.nodes.sorted))
	for i, k := range a.nodes.sorted {
		out[i] = k.name()
	}

	return out
}

func (a *inventory) setNode(n model.Node) {
	now := time.Now()
	n = a.states.compact(n)
	n.Silent = a.gaps.isSilent(n, now)
	a.nodes.set(a.judge(n, a.states.manifests(n.Manifests), 0), now)
}

// judge compares a node with its assignments. It expects the Manifests of the node in both forms, and the number of
// manifests that earlier calls removed.
func (a *inventory) judge(n model.Node, manifests []manifestState, omitted int) *nodeState {
	manifests, more := a.cut(&n, manifests)
	a.statuses = a.entries.AppendStatuses(a.statuses[:0], &n)
	out := &nodeState{NewNode(n, a.statuses, a.entries), manifests}
	out.Node.Manifests, out.OmittedManifests = nil, omitted+more

	return out
}

// Silence finds silent nodes.
func (a *inventory) Silence(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	manifests := map[string]model.ManifestState{}
	for _, k := range a.nodes.sorted {
		if !k.Silent && a.gaps.isSilent(k.Node.Node, now) {
			n := k.reported(manifests)
			n.Silent = true
			k.nodeState = a.judge(n, k.manifests, k.OmittedManifests)
			a.options.Changed()
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
	for _, k := range a.nodes.sorted {
		if n := k.reported(manifests); first || changed.Concerns(n) {
			k.nodeState = a.judge(n, k.manifests, k.OmittedManifests)
		}
	}
	a.options.Changed()
}
