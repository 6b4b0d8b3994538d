package targets_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// factsOf are facts by node; asked are the nodes that were asked for.
type factsOf struct {
	facts map[string]model.NodeFacts
	asked []string
}

func (f *factsOf) get(_ context.Context, nodes []string) iter.Seq2[model.NodeFacts, error] {
	f.asked = append(f.asked, nodes...)

	return func(yield func(model.NodeFacts, error) bool) {
		for _, n := range nodes {
			if facts, ok := f.facts[n]; ok && !yield(facts, nil) {
				return
			}
		}
	}
}

// targetFleet is a fleet with one node of each status, their facts and assignments.
func targetFleet() ([]model.Node, []model.Entry, *factsOf) {
	state := func(m model.ManifestState) map[string]model.ManifestState {
		return map[string]model.ManifestState{"group.all.motd": m}
	}
	web := []string{"web"}
	nodes := []model.Node{
		node("failed", web, state(model.ManifestState{Revision: 3, Outcome: model.OutcomeFailed})),
		node("ok", web, state(model.ManifestState{Revision: 3, Outcome: model.OutcomeStable})),
		node("pending", []string{"db"}, state(model.ManifestState{Revision: 2, Outcome: model.OutcomeChanged})),
		node("rejected", web, state(model.ManifestState{Revision: 2, Seen: 3, Late: model.LateRejected + "why"})),
		node("stopped", web, nil),
		node("unreachable", web, nil),
		{NodeState: model.NodeState{Node: "unreadable"}, Unreadable: "garbage"},
	}
	nodes[4].Event, nodes[5].Silent = model.NodeStopped, true
	facts := map[string]model.NodeFacts{"failed": {Node: "failed", Unreadable: "garbage"}, "rejected": {Node: "rejected", Facts: model.Facts{"memory": "much"}}}
	for _, n := range []string{"ok", "pending", "unreadable"} {
		facts[n] = model.NodeFacts{Node: n, Facts: model.Facts{"memory": 4096.0}}
	}

	return nodes, []model.Entry{{Key: "group.all.motd", Name: "motd", Revision: 3}}, &factsOf{facts: facts}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		expression string
		// nodes match, undecided are named; facts are those that are read.
		nodes, undecided, facts []string
	}{
		{expression: `state == "ok"`, nodes: []string{"ok"}},
		{expression: `state == "failed"`, nodes: []string{"failed"}},
		{expression: `state in ["pending", "rejected"]`, nodes: []string{"pending", "rejected"}},
		{expression: `state in ["stopped", "unreachable", "unreadable"]`, nodes: []string{"stopped", "unreachable", "unreadable"}},
		{expression: `node matches "^un"`, nodes: []string{"unreachable", "unreadable"}},
		{expression: `group("db")`, nodes: []string{"pending"}, undecided: []string{"unreadable"}},
		{expression: `manifest("motd").status == "pending"`, nodes: []string{"pending"}, undecided: []string{"unreadable"}},
		{expression: `manifest("motd").revision == 3 && manifest("motd").outcome == "failed"`, nodes: []string{"failed"}, undecided: []string{"unreadable"}},
		{expression: `group("db") && facts.memory > 1024`, nodes: []string{"pending"}, undecided: []string{"unreadable"}, facts: []string{"pending"}},
		{
			expression: `facts.memory > 1024`, nodes: []string{"ok", "pending", "unreadable"}, undecided: []string{"failed", "rejected", "stopped", "unreachable"},
			facts: []string{"failed", "ok", "pending", "rejected", "stopped", "unreachable", "unreadable"},
		},
		{expression: `node == "none"`},
	} {
		e, err := targets.Compile(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		nodes, entries, facts := targetFleet()
		listed := false
		assigned := fleet.NewAssigned(entries)
		got, err := targets.Selector{Facts: facts.get, Statuses: func(n model.Node) []fleet.RolloutStatus {
			listed = true
			return assigned.Statuses(n)
		}}.Select(t.Context(), e, nodes)
		var names, undecided []string
		for _, n := range got.Targets() {
			names = append(names, n.Node)
		}
		for _, u := range got.Undecided {
			undecided = append(undecided, u.Node)
			if u.Reason == "" {
				t.Errorf("%s: no reason for %s", c.expression, u.Node)
			}
		}
		if err != nil || got.Known != 7 || !slices.Equal(names, c.nodes) || !slices.Equal(undecided, c.undecided) || !slices.Equal(facts.asked, c.facts) || listed != e.UsesStatus() {
			t.Errorf("%s: %v, undecided %v, facts of %v, %v", c.expression, names, got.Undecided, facts.asked, err)
		}
	}
}

// TestSelectReasons: the reason of an undecided selection is reported.
func TestSelectReasons(t *testing.T) {
	t.Parallel()
	e, err := targets.Compile(`facts.memory > 1024`)
	if err != nil {
		t.Fatal(err)
	}
	nodes, _, facts := targetFleet()
	got, err := targets.Selector{Facts: facts.get}.Select(t.Context(), e, nodes)
	want := []targets.Undecided{
		{Node: "failed", Reason: "its facts cannot be read: garbage"}, {Node: "rejected", Reason: "invalid operation: string > int"},
		{Node: "stopped", Reason: "it has not stored its facts"}, {Node: "unreachable", Reason: "it has not stored its facts"},
	}
	if err != nil || !reflect.DeepEqual(got.Undecided, want) {
		t.Errorf("%v, %v", got.Undecided, err)
	}
	lost := errors.New("lost")
	_, err = targets.Selector{Facts: func(context.Context, []string) iter.Seq2[model.NodeFacts, error] {
		return func(yield func(model.NodeFacts, error) bool) { yield(model.NodeFacts{}, lost) }
	}}.Select(t.Context(), e, nodes)
	if !errors.Is(err, lost) {
		t.Error(err)
	}
}

// TestWordsOfTargets: an error of a wrong word knows all words.
func TestWordsOfTargets(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`state == "unreachabel"`, `manifest("motd").status == "up_to_date"`, `manifest("motd").outcome == "stabel"`} {
		if _, err := targets.Compile(text); !errors.As(err, new(*targets.Error)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkSelect finds the nodes of a fleet of 10,000 by group, label, status and facts.
func BenchmarkSelect(b *testing.B) {
	e, err := targets.Compile(`group("web") && labels.rack == "a3" && state != "unreachable" && facts.memory > 1024`)
	if err != nil {
		b.Fatal(err)
	}
	facts := &factsOf{facts: map[string]model.NodeFacts{}}
	var nodes []model.Node
	for i := range 10_000 {
		n := node(fmt.Sprintf("n%05d", i), []string{"web"}, map[string]model.ManifestState{"group.all.motd": {Revision: 3, Outcome: model.OutcomeStable}})
		n.Labels = map[string]string{"rack": fmt.Sprintf("a%d", i%10)}
		nodes = append(nodes, n)
		facts.facts[n.Node] = model.NodeFacts{Node: n.Node, Facts: model.Facts{"memory": 4096.0}}
	}
	assigned := fleet.NewAssigned([]model.Entry{{Key: "group.all.motd", Revision: 3}})
	for b.Loop() {
		got, err := targets.Selector{Statuses: assigned.Statuses, Facts: facts.get}.Select(b.Context(), e, nodes)
		if err != nil || len(got.Nodes) != 1000 {
			b.Fatal(len(got.Nodes), err)
		}
	}
}

func node(id string, groups []string, manifests map[string]model.ManifestState) model.Node {
	return model.Node{NodeState: model.NodeState{Node: id, Groups: groups, Manifests: manifests}}
}
