package view_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestLostManifests tests which unassigned manifests are candidates, and that only the lost ones remain.
func TestLostManifests(t *testing.T) {
	t.Parallel()
	runs := func(revisions map[string]uint64, change func(*model.Node)) func(*model.Node) {
		return func(n *model.Node) {
			for key, revision := range revisions {
				n.Manifests[key] = model.ManifestState{Revision: revision, Outcome: model.OutcomeStable}
			}
			if change != nil {
				change(n)
			}
		}
	}
	const lost, removed, assigned, away = "group.web.lost", "group.web.removed", "group.web.assigned", "group.web.away"
	var nodes []model.Node
	for i := range 30 {
		nodes = append(nodes, summaryNode(fmt.Sprintf("a%02d", i), runs(map[string]uint64{lost: uint64(100 + i), assigned: 1}, nil)))
	}
	nodes = append(
		nodes,
		summaryNode("b1", runs(map[string]uint64{removed: 5}, func(n *model.Node) { n.Paused = &model.Paused{} })),
		summaryNode("b2", runs(map[string]uint64{away: 5}, func(n *model.Node) { n.Silent = true })),
		summaryNode("b3", runs(map[string]uint64{away: 5}, func(n *model.Node) { n.Event = model.NodeStopped })),
	)
	entries := []model.Entry{summaryEntry(assigned, 1, 0)}
	all := fleet.NewAssigned(entries)
	for name, s := range map[string]view.Summary{
		"Of":   view.SummaryOf(nodes, entries, "1.0.0", now),
		"From": view.KnownSummary(nodes, all, "1.0.0", now),
	} {
		if got := fmt.Sprint(s.Revisions()); got != "map[group.web.lost:129 group.web.removed:5]" {
			t.Errorf("%s: %s", name, got)
		}
		s.SetLost(map[string]bool{lost: true})
		if len(s.Lost) != 1 || s.Lost[0].Key != lost || s.Lost[0].Nodes != 30 || fmt.Sprint(s.Lost[0].First) != "[a00 a01 a02 a03 a04 a05 a06 a07 a08 a09]" || s.LostUnchecked != 0 {
			t.Errorf("%s: %+v", name, s.Lost)
		}
	}
}

// TestLostManifestsAreBounded tests that nodes that report any number of manifests do not hide a manifest of many nodes,
// and that the number of checks has a limit.
func TestLostManifestsAreBounded(t *testing.T) {
	t.Parallel()
	const shared = "group.web.shared"
	var nodes []model.Node
	for i := range 600 {
		nodes = append(nodes, summaryNode(fmt.Sprintf("n%03d", i), func(n *model.Node) {
			for k := range 100 {
				n.Manifests[fmt.Sprintf("node.n%03d.m%02d", i, k)] = model.ManifestState{Revision: 1}
			}
		}))
	}
	for i := range 2 {
		nodes = append(nodes, summaryNode(fmt.Sprint("o", i), func(n *model.Node) { n.Manifests[shared] = model.ManifestState{Revision: 1} }))
	}
	s := view.SummaryOf(nodes[:0:0], nil, "1.0.0", now)
	if len(s.Unassigned) != 0 {
		t.Errorf("no nodes: %+v", s.Unassigned)
	}
	s = view.SummaryOf(nodes[300:], nil, "1.0.0", now)
	if len(s.Unassigned) != 50 || s.Unassigned[0].Key != shared || s.Unassigned[0].Nodes != 2 {
		t.Errorf("%d: %+v", len(s.Unassigned), s.Unassigned[:1])
	}
	s.SetLost(map[string]bool{shared: true})
	if want := 300*100 - 49; len(s.Lost) != 1 || s.LostUnchecked != want {
		t.Errorf("%+v, %d not checked, not %d", s.Lost, s.LostUnchecked, want)
	}
}
