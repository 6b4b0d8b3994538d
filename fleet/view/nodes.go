package view

import (
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/summary"
	"github.com/musterfleet/muster/model"
)

// known is a node of the table.
type known struct {
	*state
	// toldAt is when this was told.
	toldAt time.Time
}

// table has the nodes, by name and in the order of their names.
type table struct {
	byName map[string]*known
	sorted []*known
}

func newTable() table { return table{byName: map[string]*known{}} }

func (t *table) set(s *state, told time.Time) {
	name := s.name()
	if k := t.byName[name]; k != nil {
		k.state, k.toldAt = s, told
		return
	}
	k := &known{s, told}
	t.byName[name] = k
	at, _ := t.find(name)
	t.sorted = slices.Insert(t.sorted, at, k)
}

func (t *table) remove(name string) {
	if at, found := t.find(name); found {
		t.sorted = slices.Delete(t.sorted, at, at+1)
	}
	delete(t.byName, name)
}

func (t *table) find(name string) (int, bool) {
	return slices.BinarySearchFunc(t.sorted, name, func(k *known, name string) int { return strings.Compare(k.name(), name) })
}

// all returns the nodes by name.
func (t *table) all() []*state {
	out := make([]*state, len(t.sorted))
	for i, k := range t.sorted {
		out[i] = k.state
	}

	return out
}

// SetNodes says which nodes there were when that was asked, and takes them over. What was told of
// a node since then is newer, and stays.
func (f *Fleet) SetNodes(asked time.Time, all []model.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := make(map[string]bool, len(all))
	for _, n := range all {
		listed[n.Node] = true
		if k := f.nodes.byName[n.Node]; k == nil || k.toldAt.Before(asked) {
			f.setNode(n)
		}
	}
	for _, k := range slices.Clone(f.nodes.sorted) {
		if name := k.name(); !listed[name] && k.toldAt.Before(asked) {
			f.removeNode(name)
		}
	}
	f.progress.nodes = true
	f.changes++
}

// SetNode tells the state of a node, and takes it over.
func (f *Fleet) SetNode(n model.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setNode(n)
	f.changes++
}

// RemoveNode tells that a node is not known any more.
func (f *Fleet) RemoveNode(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removeNode(name)
	f.changes++
}

// NodeNames returns the names of the known nodes, in order.
func (f *Fleet) NodeNames() []string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := make([]string, len(f.nodes.sorted))
	for i, k := range f.nodes.sorted {
		out[i] = k.name()
	}

	return out
}

func (f *Fleet) removeNode(name string) {
	f.nodes.remove(name)
	f.events.forget(name)
	f.runs.forget(name)
}

func (f *Fleet) setNode(n model.Node) {
	now := time.Now()
	n = f.states.compact(n)
	n.Silent = n.IsSilent(now)
	f.nodes.set(f.judge(n, f.states.manifests(n.Manifests)), now)
}

// judge compares a node with what is assigned to it; manifests are its Manifests in little memory.
func (f *Fleet) judge(n model.Node, manifests []manifestState) *state {
	f.statuses = f.entries.AppendStatuses(f.statuses[:0], &n)
	out := &state{summary.NewNode(n, f.statuses, f.entries), manifests}
	out.Node.Manifests = nil

	return out
}

// silence finds nodes that were not heard of lately.
func (f *Fleet) silence(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	manifests := map[string]model.ManifestState{}
	for _, k := range f.nodes.sorted {
		if !k.Silent && k.IsSilent(now) {
			n := k.told(manifests)
			n.Silent = true
			k.state = f.judge(n, k.manifests)
			f.changes++
		}
	}
}

// SetAssignments says what is assigned.
func (f *Fleet) SetAssignments(entries []model.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := fleet.NewAssigned(entries)
	changed := all.Difference(f.entries)
	f.entries = all
	if f.progress.assignments && changed.IsEmpty() {
		return
	}
	manifests := map[string]model.ManifestState{}
	for _, k := range f.nodes.sorted {
		if n := k.told(manifests); changed.Concerns(n) {
			k.state = f.judge(n, k.manifests)
		}
	}
	f.progress.assignments = true
	f.changes++
}
