package fleet_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
)

// TestStatesThatAreNotStored tests when nodes are asked for the reason, and when their silence is one.
func TestStatesThatAreNotStored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := func(name string, ago, ttl time.Duration) *model.Node {
		return &model.Node{NodeState: model.NodeState{Node: name, SilentAfter: model.Duration(ttl)}, Heard: now.Add(-ago)}
	}
	stopped := node("d", 10*time.Minute, 5*time.Minute)
	stopped.Event = model.NodeStopped
	old := node("e", time.Hour, 5*time.Minute)
	for name, c := range map[string]struct {
		nodes []*model.Node
		ago   time.Duration
		ask   string
		guess bool
	}{
		"no node":              {nil, time.Hour, "", false},
		"a state a moment ago": {[]*model.Node{node("a", time.Minute, 5*time.Minute)}, 20 * time.Second, "", false},
		"quiet":                {[]*model.Node{node("a", time.Minute, 5*time.Minute)}, time.Minute, "a", false},
		"overdue":              {[]*model.Node{node("a", 4*time.Minute, 5*time.Minute), node("b", 4*time.Minute, 5*time.Minute), node("c", 4*time.Minute, time.Hour)}, 4 * time.Minute, "a b c", true},
		"silent meanwhile":     {[]*model.Node{node("a", 10*time.Minute, 5*time.Minute)}, 10 * time.Minute, "a", true},
		"newest three":         {[]*model.Node{node("a", 4*time.Minute, time.Hour), node("b", 3*time.Minute, time.Hour), node("c", 2*time.Minute, time.Hour), node("d", time.Minute, time.Hour)}, time.Minute, "d c b", false},
		"only stopped and old": {[]*model.Node{stopped, old}, 10 * time.Minute, "", false},
		"without a ttl":        {[]*model.Node{node("a", time.Hour, 0)}, time.Hour, "", false},
		"one short ttl":        {[]*model.Node{node("a", 8*time.Second, 4*time.Second), node("b", time.Minute, 5*time.Minute)}, 8 * time.Second, "", false},
		"a huge ttl":           {[]*model.Node{node("a", time.Minute, 5*time.Minute), node("b", time.Minute, 5e18)}, time.Minute, "a b", false},
		"short ttls":           {[]*model.Node{node("a", 2*time.Second, 10*time.Second), node("b", 2*time.Second, 10*time.Second), node("c", time.Minute, 5*time.Minute)}, 2 * time.Second, "a b c", false},
	} {
		got := fleet.FindUnstoredStates(model.LastStored{Stream: "S", Server: "n0", At: now.Add(-c.ago), Now: now}, values(c.nodes))
		if text := strings.Join(got.Ask, " "); text != c.ask || (got.Guess() != "") != c.guess {
			t.Errorf("%s: asks %q, guesses %q", name, text, got.Guess())
		}
		if len(got.Ask) > 0 && got.Witnesses != min(len(got.Ask), 2) {
			t.Errorf("%s: needs %d witnesses of %q", name, got.Witnesses, got.Ask)
		}
		if text := got.Guess(); c.guess && (!strings.Contains(text, "the NATS server n0 does not store states") || !strings.Contains(text, "/healthz")) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestReportsThatAreNotStored tests when waiting reports are a sign of a server that stores none.
func TestReportsThatAreNotStored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	node := func(name string, ago time.Duration, waiting int) *model.Node {
		return &model.Node{NodeState: model.NodeState{Node: name, Outbox: waiting, SilentAfter: model.Duration(5 * time.Minute)}, Heard: now.Add(-ago)}
	}
	short := node("b", 10*time.Second, 1)
	short.SilentAfter = model.Duration(time.Second)
	for name, c := range map[string]struct {
		nodes []*model.Node
		ago   time.Duration
		want  int
	}{
		"nothing waits":           {[]*model.Node{node("a", time.Minute, 0)}, time.Hour, 0},
		"waits for a minute":      {[]*model.Node{node("b", time.Minute, 2)}, time.Hour, 1},
		"two nodes of three wait": {[]*model.Node{node("b", time.Minute, 2), node("a", time.Minute, 0), node("c", time.Minute, 1)}, time.Hour, 2},
		"one node of two waits":   {[]*model.Node{node("a", time.Minute, 0), node("b", time.Minute, 2)}, time.Hour, 0},
		"the other is silent":     {[]*model.Node{node("a", 10*time.Minute, 0), node("b", time.Minute, 2)}, time.Hour, 1},
		"one short ttl":           {[]*model.Node{short, node("a", time.Minute, 0)}, time.Hour, 0},
		"waits since a moment":    {[]*model.Node{node("a", time.Second, 2)}, time.Hour, 0},
		"a report was stored now": {[]*model.Node{node("a", 20*time.Second, 2)}, 25 * time.Second, 0},
		"the state is older":      {[]*model.Node{node("a", time.Hour, 2)}, time.Minute, 0},
	} {
		text := fleet.UnstoredReports(model.LastStored{Stream: "S", Server: "n0", At: now.Add(-c.ago), Now: now}, values(c.nodes))
		if (text != "") != (c.want > 0) || c.want > 0 && (!strings.Contains(text, "the NATS server n0 stores no reports since") || !strings.Contains(text, fmt.Sprintf("%d, first b", c.want))) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// values yields nodes.
func values(all []*model.Node) iter.Seq[*model.Node] { return slices.Values(all) }
