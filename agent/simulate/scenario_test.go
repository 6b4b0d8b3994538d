package simulate

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/facts"
)

func scriptsOf(t *testing.T, p Plan) []Script {
	t.Helper()
	out, err := Scripts(p)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// TestTheSameSeedIsTheSameFleet, and another seed another one.
func TestTheSameSeedIsTheSameFleet(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	for _, scenario := range Scenarios() {
		p := Plan{Nodes: 60, Scenario: scenario, Seed: 7}
		first, second := scriptsOf(t, p), scriptsOf(t, p)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s: the scripts of one seed differ", scenario)
		}
		p.Seed = 8
		other := scriptsOf(t, p)
		text := func(s Script) string {
			text, err := json.Marshal(s.facts(now, flagList()))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		if text(first[3]) != text(second[3]) || text(first[3]) == text(first[4]) || text(first[3]) == text(other[3]) {
			t.Errorf("%s: facts are not those of seed and node", scenario)
		}
	}
}

// TestKinds: a scenario has some of each kind, in a small fleet too, and no hostile one unless
// that is asked for.
func TestKinds(t *testing.T) {
	t.Parallel()
	all := []Kind{KindBacklog, KindDrifting, KindFailing, KindFlapping, KindLate, KindOld, KindSilent, KindSkewed, KindStable, KindUnhealthy}
	for scenario, want := range map[string][]Kind{
		"stable": {KindStable}, "mixed": all, "": all, "hostile": append([]Kind{KindHostile}, all...),
	} {
		for _, count := range []int{25, 1000} {
			counts := map[Kind]int{}
			for _, s := range scriptsOf(t, Plan{Nodes: count, Scenario: scenario}) {
				counts[s.Kind]++
			}
			slices.Sort(want)
			if got := slices.Sorted(maps.Keys(counts)); !slices.Equal(got, want) || counts[KindStable] < count/2 {
				t.Errorf("%d nodes of %q: %v", count, scenario, counts)
			}
		}
	}
	if got := scriptsOf(t, Plan{Nodes: 1}); len(got) != 1 || got[0].Node != "sim-0001" {
		t.Errorf("one node: %+v", got)
	}
	for _, p := range []Plan{{Nodes: 0}, {Nodes: 1, Scenario: "calm"}} {
		if _, err := Scripts(p); err == nil {
			t.Errorf("%+v is valid", p)
		}
	}
}

// TestFactsAreThoseOfAMachine: they have a real node's size, each node has its own address, and only volatile
// facts differ a minute later.
func TestFactsAreThoseOfAMachine(t *testing.T) {
	t.Parallel()
	now, cpuFlags := time.Unix(1_790_000_000, 0), flagList()
	addresses := map[any]bool{}
	scripts := scriptsOf(t, Plan{Nodes: 100, Scenario: "stable"})
	for _, s := range scripts {
		of := s.facts(now, cpuFlags)
		text, err := json.Marshal(of)
		if err != nil || len(text) < 3<<10 || len(text) > 6<<10 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		later := s.facts(now.Add(time.Minute), cpuFlags)
		if reflect.DeepEqual(of, later) || facts.Digest(of) != facts.Digest(later) {
			t.Errorf("%s: a minute later %v are %v", s.Node, of, later)
		}
		addresses[of["network"].(map[string]any)["primary"].(map[string]any)["address"]] = true
	}
	if len(addresses) < len(scripts) {
		t.Errorf("%d nodes have %d addresses", len(scripts), len(addresses))
	}
}

// TestNamesThatAreTaken: only a simulated node that has ended is played again.
func TestNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	scripts := scriptsOf(t, Plan{Nodes: 2})
	node := func(name, label string, event model.NodeEvent, silent bool) model.Node {
		labels := map[string]string{}
		if label != "" {
			labels[Label] = label
		}
		return model.Node{NodeState: model.NodeState{Node: name, Labels: labels, Event: event}, Silent: silent}
	}
	for name, c := range map[string]struct {
		node  model.Node
		taken bool
	}{
		"another":             {node("sim-0003", "", "", false), false},
		"real":                {node("sim-0002", "", "", false), true},
		"real, stopped":       {node("sim-0002", "", model.NodeStopped, false), true},
		"real, unreachable":   {node("sim-0002", "", "", true), true},
		"simulated":           {node("sim-0002", "yes", "", false), true},
		"simulated, stopped":  {node("sim-0002", "yes", model.NodeStopped, false), false},
		"simulated, killed":   {node("sim-0002", "yes", "", true), false},
		"nobody knows":        {model.Node{NodeState: model.NodeState{Node: "sim-0002"}, Unreadable: "garbage"}, true},
		"nobody knows, other": {model.Node{NodeState: model.NodeState{Node: "x"}, Unreadable: "garbage"}, false},
	} {
		if err := CheckNames(scripts, []model.Node{c.node}); errors.Is(err, ErrTaken) != c.taken {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChoose: for one name the assignment of the first family wins, and invalid ones do not count.
func TestChoose(t *testing.T) {
	t.Parallel()
	entries := map[string]model.Entry{}
	for key, e := range map[string]model.Entry{
		"group.all.motd": {}, "group.sim.motd": {}, "node.sim-0001.ntp": {}, "group.all.ntp": {}, "group.all.gone": {Deleted: true},
		"group.all.bad": {Refused: "no"}, "group.db.motd": {},
	} {
		e.Key = key
		entries[key] = e
	}
	var got []string
	for _, e := range choose(model.Families("sim-0001", []string{"sim"}), entries) {
		got = append(got, e.Key)
	}
	if want := []string{"node.sim-0001.ntp", "group.sim.motd"}; !slices.Equal(got, want) {
		t.Errorf("chosen are %q", got)
	}
}
