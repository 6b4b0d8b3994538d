package status

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Another agent of the node's name is seen whatever the clock of this one is.
func TestDuplicateByTheServersClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, ahead := range map[string]time.Duration{"right": 0, "ahead": time.Hour, "behind": -time.Hour} {
		h := &Heartbeat{Node: &Node{started: now}, Clock: NewClock(func() time.Time { return now.Add(ahead) }, func() time.Duration { return 0 })}
		h.Clock.Measured(now, 0, 0)
		other := model.Node{Heard: now.Add(-time.Minute), Silent: ahead > 0}
		other.Started, other.SilentAfter = now.Add(-time.Hour), model.Duration(5*time.Minute)
		if !h.isDuplicate(other) {
			t.Errorf("%s: one that stored its state a minute ago is not seen", name)
		}
		other.Heard = now.Add(-6 * time.Minute)
		if h.isDuplicate(other) {
			t.Errorf("%s: one that is silent is seen", name)
		}
	}
}

// TestChangesAreShown: every change wakes the writers and readers of the state; a call without a change wakes
// none.
func TestChangesAreShown(t *testing.T) {
	t.Parallel()
	n := New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, System())
	failed := &model.Run{Errors: []string{"no"}, Counts: model.Counts{Total: 1, Failed: 1}}
	for name, set := range map[string]func(){
		"part":        func() { n.Record("a", false).ConcludePart(&model.Run{Errors: []string{"not that either"}}) },
		"watches":     func() { n.SetWatches(2, 1, errors.New("no")) },
		"flapping":    func() { n.SetFlapping([]model.FlappingState{{}}) },
		"health":      func() { n.SetHealth("a", model.HealthCounts{OK: 1}) },
		"message":     func() { n.SetMessage("no", false) },
		"config":      func() { n.SetConfig("no") },
		"rejected":    func() { n.SetControl(nil, nil, nil, map[string]string{"node.a.pause": "no"}, "") },
		"duplicate":   func() { n.setDuplicate("no") },
		"run":         func() { n.Record("a", true).Conclude(failed, true) },
		"assignments": func() { n.SetAssignments(map[string]model.ManifestState{"a": {}}) },
	} {
		set()
		for kind, signal := range map[string]tasks.Signal{"stored": n.Changed, "shown": n.Shown} {
			select {
			case <-signal:
			default:
				t.Errorf("%s is not %s", name, kind)
			}
		}
	}
	n.SetWatches(2, 1, errors.New("no"))
	n.SetHealth("b", model.HealthCounts{})
	n.SetControl(nil, nil, nil, map[string]string{"node.a.pause": "no"}, "")
	n.setDuplicate("no")
	n.Record("a", false).ConcludePart(&model.Run{})
	select {
	case <-n.Shown:
		t.Error("what changes nothing is shown")
	default:
	}
}

// TestAStableRunIsShownOnly: the heartbeat stores a run without changes later. Otherwise a node with thousands of manifests
// would encode its state for each of their runs.
func TestAStableRunIsShownOnly(t *testing.T) {
	t.Parallel()
	n := New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, System())
	assigned := map[string]model.ManifestState{"a": {Revision: 1, Digest: "x"}}
	stable := func() {
		n.Record("a", true).Conclude(&model.Run{Revision: 1, Digest: "x", Counts: model.Counts{Total: 1, Stable: 1}}, true)
	}
	n.SetAssignments(assigned)
	stable()
	<-n.Changed
	<-n.Shown
	at := n.State().Manifests["a"].At
	for what, again := range map[string]func(){"a run": stable, "the same assignments": func() { n.SetAssignments(assigned) }} {
		again()
		select {
		case <-n.Changed:
			t.Errorf("%s is stored", what)
		case <-n.Shown:
		}
	}
	if !n.State().Manifests["a"].At.After(at) {
		t.Error("the time of the run is not shown")
	}
}

// TestALargeStateIsStoredLessOften: but often enough to stay reachable.
func TestALargeStateIsStoredLessOften(t *testing.T) {
	t.Parallel()
	c := config.Config{Heartbeat: model.Duration(time.Minute), StateTTL: model.Duration(5 * time.Minute)}
	h := &Heartbeat{Node: New("v", func() config.Config { return c }, func() int { return 0 }, func() int { return 0 }, System())}
	for size, want := range map[int]time.Duration{0: time.Minute, largeState: time.Minute, largeState * 3 / 2: 90 * time.Second, 100 * largeState: 100 * time.Second} {
		h.stored.state = strings.Repeat("x", size)
		if d := h.stretch(time.Minute); d != want {
			t.Errorf("%d bytes: %s, not %s", size, d, want)
		}
	}
}

// TestSinceWhenItFails: from the first run that failed on, whatever failed after it, until one went
// well, over a new revision and over a restart of the agent.
func TestSinceWhenItFails(t *testing.T) {
	t.Parallel()
	const key = "group.all.site"
	start := func() *Node {
		n := New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, System())
		n.SetAssignments(map[string]model.ManifestState{key: {Revision: 1}})
		return n
	}
	since := func(n *Node) time.Time { return n.State().Manifests[key].FailedSince }
	fails := func(revision uint64) *model.Run {
		return &model.Run{Revision: revision, Errors: []string{"no"}, Counts: model.Counts{Total: 1, Failed: 1}}
	}
	n := start()
	n.Record(key, false).ConcludePart(fails(1))
	first := since(n)
	if first.IsZero() || !first.Equal(n.State().Manifests[key].At) {
		t.Fatalf("it fails since %s", first)
	}
	for name, next := range map[string]func(){
		"another run":                        func() { n.Record(key, true).Conclude(fails(1), true) },
		"another part":                       func() { n.Record(key, false).ConcludePart(fails(1)) },
		"a run that did not come to its end": func() { n.Record(key, true).Conclude(&model.Run{Revision: 1, Counts: model.Counts{NotRun: 1}}, true) },
		"a revision, its run to come":        func() { n.SetAssignments(map[string]model.ManifestState{key: {Revision: 2}}) },
		"the run of a revision":              func() { n.Record(key, true).Conclude(fails(2), true) },
	} {
		if next(); !since(n).Equal(first) {
			t.Errorf("after %s it fails since %s, not since %s", name, since(n), first)
		}
	}
	before, again := n.State(), start()
	again.Recall(before)
	if !since(again).Equal(first) {
		t.Errorf("after a restart it fails since %s, not since %s", since(again), first)
	}
	again.Record(key, true).Conclude(fails(1), true)
	if !since(again).Equal(first) {
		t.Errorf("after the first run of a restarted agent it fails since %s, not since %s", since(again), first)
	}
	again.Record(key, true).Conclude(&model.Run{Revision: 1, Counts: model.Counts{Total: 1, Stable: 1}}, true)
	if again.Recall(before); !since(again).IsZero() {
		t.Errorf("after a run that went well it fails since %s", since(again))
	}
	again.Record(key, true).Conclude(fails(1), true)
	if failed := since(again); !failed.After(first) {
		t.Errorf("it fails again since %s, and failed first at %s", failed, first)
	}
	again.Recall(before)
	if !since(again).After(first) {
		t.Errorf("what was stored before counts again: %s", since(again))
	}
	other := start()
	m := before.Manifests[key]
	m.FailedSince = time.Now().Add(time.Hour)
	other.Recall(model.NodeState{Manifests: map[string]model.ManifestState{key: m, "group.all.gone": m}})
	if s := other.State(); len(s.Manifests) != 1 || !since(other).IsZero() {
		t.Errorf("a failure of the future, and of what is not assigned, is taken over: %+v", s.Manifests)
	}
}

// TestRejectedControl: each rejected document is in the state by its key, of many those that fit,
// and the message has the first ones.
func TestRejectedControl(t *testing.T) {
	t.Parallel()
	n := New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 512 << 10 }, System())
	all := map[string]string{}
	for i := range 2 * maxRejected {
		all[fmt.Sprintf("group.g%03d.pause", i)] = strings.Repeat("x", 2<<10)
	}
	n.SetControl(nil, nil, nil, all, "")
	s := n.State()
	if why := s.RejectedControl["group.g000.pause"]; len(s.RejectedControl) != maxRejected || len(why) < 1<<10 || len(why) > 2<<10 || strings.Count(s.Message, "rejected: group.g00") != 3 || !strings.HasSuffix(s.Message, "; and 97 more") {
		t.Errorf("%d, %d bytes, %q", len(s.RejectedControl), len(why), s.Message)
	}
	delete(all, "group.g099.pause")
	n.SetControl(nil, nil, nil, all, "")
	if s := n.State(); !strings.HasSuffix(s.Message, "; and 96 more") {
		t.Errorf("%q", s.Message)
	}
	n.SetControl(nil, nil, nil, nil, "")
	if s := n.State(); s.RejectedControl != nil || s.Message != "" {
		t.Errorf("%v, %q", s.RejectedControl, s.Message)
	}
}

func TestWithOutcome(t *testing.T) {
	ran := model.ManifestState{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged, Counts: model.Counts{Changed: 1}, Error: "x", Seen: 3, Late: "y"}
	for name, c := range map[string]struct{ now, want model.ManifestState }{
		"the same revision":   {model.ManifestState{Revision: 2, Digest: "d"}, model.ManifestState{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged, Counts: model.Counts{Changed: 1}, Error: "x"}},
		"a newer one waits":   {model.ManifestState{Revision: 2, Digest: "d", Seen: 4, Late: "z"}, model.ManifestState{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged, Counts: model.Counts{Changed: 1}, Error: "x", Seen: 4, Late: "z"}},
		"another revision":    {model.ManifestState{Revision: 3, Digest: "e"}, model.ManifestState{Revision: 3, Digest: "e", Ran: &model.RanRevision{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged}}},
		"not active any more": {model.ManifestState{Seen: 2}, model.ManifestState{Seen: 2, Ran: &model.RanRevision{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged}}},
	} {
		if got := withOutcome(c.now, ran); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestWhatRanLastOutlivesWhatIsNotActive: a rejected or inapplicable revision between one that ran and one
// that waits does not change the last run. A manifest whose first revision was rejected has no run.
func TestWhatRanLastOutlivesWhatIsNotActive(t *testing.T) {
	t.Parallel()
	const key, fresh = "group.all.site", "group.all.new"
	n := New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, System())
	n.SetAssignments(map[string]model.ManifestState{key: {Revision: 5, Digest: "d"}})
	n.Record(key, true).Conclude(&model.Run{Revision: 5, Digest: "d", Counts: model.Counts{Total: 1, Stable: 1}}, true)
	n.SetAssignments(map[string]model.ManifestState{key: {Seen: 6}, fresh: {Seen: 1, Late: "rejected: no"}})
	for _, k := range []string{key, fresh} {
		if got := n.State().Manifests[k].Last(); got != (model.RanRevision{}) {
			t.Errorf("%s: %+v runs, and is not active", k, got)
		}
	}
	n.SetAssignments(map[string]model.ManifestState{key: {Revision: 7, Digest: "e"}, fresh: {Revision: 2, Digest: "f"}})
	if got := n.State().Manifests[key].Last(); got.Revision != 5 || got.Outcome != model.OutcomeStable {
		t.Errorf("%+v", got)
	}
	if got := n.State().Manifests[fresh].Last(); got != (model.RanRevision{}) {
		t.Errorf("%+v", got)
	}
}

// TestWhatRanLast is known while later revisions wait, also over a restart of the agent, until one of them ran.
func TestWhatRanLast(t *testing.T) {
	t.Parallel()
	const key, fresh = "group.all.site", "group.all.new"
	start := func() *Node {
		return New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, System())
	}
	last := func(n *Node, key string) string {
		s := n.State().Manifests[key]
		r := s.Last()
		return fmt.Sprint(s.Revision, " ran ", r.Revision, r.Digest, " ", r.Outcome, " ", !r.At.IsZero())
	}
	n := start()
	n.SetAssignments(map[string]model.ManifestState{key: {Revision: 6, Digest: "d"}})
	n.Record(key, true).Conclude(&model.Run{Revision: 6, Digest: "d", Counts: model.Counts{Total: 1, Stable: 1}}, true)
	for revision := range uint64(2) {
		n.SetAssignments(map[string]model.ManifestState{key: {Revision: 7 + revision, Digest: "e"}, fresh: {Revision: 9, Digest: "f"}})
	}
	if got := last(n, key); got != "8 ran 6d stable true" {
		t.Errorf("while revisions wait: %s", got)
	}
	if got := last(n, fresh); got != "9 ran 0  false" {
		t.Errorf("while a first one waits: %s", got)
	}
	again := start()
	again.SetAssignments(map[string]model.ManifestState{key: {Revision: 8, Digest: "e"}, fresh: {Revision: 9, Digest: "f"}})
	again.Recall(n.State())
	if got := last(again, key) + "; " + last(again, fresh); got != "8 ran 6d stable true; 9 ran 0  false" {
		t.Errorf("after a restart: %s", got)
	}
	again.Record(key, true).Conclude(&model.Run{Revision: 8, Digest: "e", Counts: model.Counts{Total: 1, Changed: 1}}, true)
	if got := last(again, key); got != "8 ran 8e changed true" || again.State().Manifests[key].Ran != nil {
		t.Errorf("after its run: %s", got)
	}
	again.Recall(n.State())
	if got := last(again, key); got != "8 ran 8e changed true" {
		t.Errorf("what was stored before: %s", got)
	}
}
