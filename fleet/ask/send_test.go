package ask_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// never is a silence longer than any test.
const never = time.Hour

// network yields the answers of each family. If held is set, it ends only with the context.
type network struct {
	answers map[string][]model.EnsureResponse
	held    bool
	err     error
	// patience, if set, returns how long nodes have after a lost connection; await, if set, waits before a batch.
	patience func() time.Duration
	await    func(batch string) error

	mu            sync.Mutex
	sent, awaited []string
}

func (n *network) Send(ctx context.Context, families, awaited []string) iter.Seq2[model.EnsureResponse, error] {
	n.mu.Lock()
	n.sent, n.awaited = append(n.sent, strings.Join(families, " ")), append(n.awaited, awaited...)
	n.mu.Unlock()

	return func(yield func(model.EnsureResponse, error) bool) {
		for _, family := range families {
			for _, r := range n.answers[family] {
				if !yield(r, nil) {
					return
				}
			}
		}
		if n.err != nil && !yield(model.EnsureResponse{}, n.err) {
			return
		}
		if n.held {
			<-ctx.Done()
		}
	}
}

func (n *network) Patience() time.Duration {
	if n.patience == nil {
		return 0
	}

	return n.patience()
}

func (n *network) Await(_ context.Context, batch string) error {
	if n.await == nil {
		return nil
	}

	return n.await(batch)
}

func response(node string, phase model.EnsurePhase) model.EnsureResponse {
	r := model.EnsureResponse{Node: node, Phase: phase, ID: "1"}
	if phase == model.EnsureDone {
		r.State = &model.Transaction{Type: "exec", Name: "uptime", Changed: true}
	}

	return r
}

// known returns nodes of a fleet, which are all in the group web.
func known(names ...string) []model.Node {
	var all []model.Node
	for _, name := range names {
		all = append(all, model.Node{NodeState: model.NodeState{Node: name, Groups: []string{"web"}}})
	}

	return all
}

var toWeb = []fleet.Target{{Group: "web"}}

func TestSendGathers(t *testing.T) {
	a := &network{held: true, answers: map[string][]model.EnsureResponse{"group.web": {
		response("b", model.EnsureAcknowledged), response("a", model.EnsureAcknowledged), response("a", model.EnsureRunning),
		{Node: "a", ID: "other", Phase: model.EnsureFailed},
		response("a", model.EnsureDone), response("a", model.EnsureFailed), response("b", model.EnsureDone),
	}}}
	var progress []ask.Progress
	var answered []string
	e := ask.Request{ID: "1", Network: a, Known: known("a", "b"), Targets: toWeb, Silence: never,
		OnProgress: func(_ string, p ask.Progress) { progress = append(progress, p) },
		OnAnswer:   func(r model.EnsureResponse) { answered = append(answered, r.Node+" "+string(r.Phase)) },
	}
	got, err := e.Send(t.Context())
	if err != nil || !got.OK() || len(got.Answers) != 2 || got.Answers[0].Node != "a" || got.Answers[0].Phase != model.EnsureDone {
		t.Errorf("got %+v %v", got, err)
	}
	if !reflect.DeepEqual(answered, []string{"a done", "b done"}) {
		t.Errorf("answered %v", answered)
	}
	if progress[0] != (ask.Progress{Expected: 2}) || progress[len(progress)-1] != (ask.Progress{Expected: 2, Acknowledged: 2, Finished: 2}) {
		t.Errorf("progress %v", progress)
	}
	if !slices.Equal(a.sent, []string{"group.web"}) {
		t.Errorf("sent to %v", a.sent)
	}
}

// TestSendAwaitsWhoWasThereLately: stopped and silent nodes are not awaited.
func TestSendAwaitsWhoWasThereLately(t *testing.T) {
	all := known("a", "stopped", "silent", "db")
	all[1].Event, all[2].Silent, all[3].Groups = model.NodeStopped, true, nil
	a := &network{}
	if _, err := (&ask.Request{ID: "1", Network: a, Known: all, Targets: append(toWeb, fleet.Target{Node: "db"})}).Send(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(a.awaited)
	if !slices.Equal(a.awaited, []string{"a", "db"}) {
		t.Errorf("awaited %v", a.awaited)
	}
}

// TestSendWaitsLongerForWhoIsThere: nodes that are away have less time to answer.
func TestSendWaitsLongerForWhoIsThere(t *testing.T) {
	all := known("there", "stopped", "silent")
	all[1].Event, all[2].Silent = model.NodeStopped, true
	for name, c := range map[string]struct {
		answers []model.EnsureResponse
		want    time.Duration
	}{
		"none answers":            {nil, 7 * time.Second},
		"the one there answers":   {[]model.EnsureResponse{response("there", model.EnsureDone)}, 5 * time.Second},
		"the one stopped answers": {[]model.EnsureResponse{response("stopped", model.EnsureDone)}, 7 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &network{held: true, answers: map[string][]model.EnsureResponse{"group.web": c.answers}}
			begun := time.Now()
			got, err := (&ask.Request{ID: "1", Network: a, Known: all, Targets: toWeb}).Send(t.Context())
			if took := time.Since(begun); err != nil || took != c.want || len(got.Missing) != 3-len(c.answers) {
				t.Errorf("%s: after %s %+v, %v", name, took, got, err)
			}
		})
	}
}

// TestSendOnce: only the first answer of a node counts.
func TestSendOnce(t *testing.T) {
	a := &network{held: true, answers: map[string][]model.EnsureResponse{"group.web": {
		response("a", model.EnsureRunning), response("a", model.EnsureDone), response("b", model.EnsureCancelled),
	}}}
	got, err := (&ask.Request{ID: "1", Network: a, Known: known("a", "b"), Targets: toWeb, Silence: never, FirstOnly: true}).Send(t.Context())
	if want := map[string]ask.State{"a": ask.StateRunning, "b": ask.StateCancelled}; err != nil || !maps.Equal(got.NodeStates(), want) || got.OK() {
		t.Errorf("got %+v %v", got, err)
	}
}

// A node in two targets receives the request twice and answers twice; it counts once.
func TestSendSeveralTargets(t *testing.T) {
	a := &network{held: true, answers: map[string][]model.EnsureResponse{
		"group.web": {response("a", model.EnsureDone)}, "node.a": {response("a", model.EnsureDone)}, "node.x": {response("x", model.EnsureDone)},
	}}
	got, err := (&ask.Request{ID: "1", Network: a, Known: known("a"), Targets: append(toWeb, fleet.Target{Node: "a"}, fleet.Target{Node: "x"}), Silence: never}).Send(t.Context())
	if err != nil || !got.OK() || len(got.Answers) != 2 || len(a.sent) != 2 {
		t.Errorf("got %+v %v", got, err)
	}
}

func TestSendNamesWhoDoesNotAnswer(t *testing.T) {
	answers := map[string][]model.EnsureResponse{"group.web": {response("a", model.EnsureDone), response("b", model.EnsureAcknowledged)}}
	want := func(t *testing.T, got *ask.Ensured, err error) {
		t.Helper()
		if err != nil || got.OK() || !reflect.DeepEqual(got.Missing, []string{"c", "gone"}) || !reflect.DeepEqual(got.Unfinished, []string{"b"}) {
			t.Errorf("got %+v %v", got, err)
		}
	}
	targets := append(toWeb, fleet.Target{Node: "gone"})
	t.Run("when nothing more can come", func(t *testing.T) {
		e := ask.Request{ID: "1", Targets: targets, Network: &network{answers: answers}, Known: known("c", "b", "a"), Silence: never}
		got, err := e.Send(t.Context())
		want(t, got, err)
	})
	t.Run("when the time is over", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := ask.Request{ID: "1", Targets: targets, Network: &network{answers: answers, held: true}, Known: known("c", "b", "a"), Silence: never, OnProgress: func(_ string, p ask.Progress) {
			if p.Acknowledged == 2 {
				cancel()
			}
		}}
		got, err := e.Send(ctx)
		want(t, got, err)
	})
	t.Run("named while the request waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var silent []string
		e := ask.Request{ID: "1", Targets: toWeb, Network: &network{held: true}, Known: known("c", "a"), Silence: never, Quiet: time.Millisecond, OnSilent: func(nodes []string) {
			silent = nodes
			cancel()
		}}
		if _, err := e.Send(ctx); err != nil || !slices.Equal(silent, []string{"a", "c"}) {
			t.Errorf("silent: %q, %v", silent, err)
		}
	})
	t.Run("after their silence", func(t *testing.T) {
		done := map[string][]model.EnsureResponse{"group.web": {response("a", model.EnsureDone)}}
		e := ask.Request{ID: "1", Targets: toWeb, Network: &network{answers: done, held: true}, Known: known("c", "a"), Silence: time.Millisecond}
		// The silence may end before the answer is read, so the test does not check that answer.
		got, err := e.Send(t.Context())
		if err != nil || got.OK() || got.Missing[len(got.Missing)-1] != "c" {
			t.Errorf("got %+v %v", got, err)
		}
	})
}

// Answers of unknown nodes count. A request without answers is not OK.
func TestSendUnknownNodes(t *testing.T) {
	a := &network{answers: map[string][]model.EnsureResponse{"group.web": {response("new", model.EnsureDone)}}}
	got, err := (&ask.Request{ID: "1", Network: a, Known: known(), Targets: toWeb, Silence: never}).Send(t.Context())
	if err != nil || !got.OK() || got.Answers[0].Node != "new" {
		t.Errorf("got %+v %v", got, err)
	}
	none, err := (&ask.Request{ID: "1", Network: &network{}, Known: known(), Targets: toWeb, Silence: never}).Send(t.Context())
	if err != nil || none.OK() {
		t.Errorf("nobody: %+v %v", none, err)
	}
}

func TestSendErrors(t *testing.T) {
	broken := errors.New("broken")
	a := &network{err: broken, answers: map[string][]model.EnsureResponse{"group.web": {response("a", model.EnsureDone)}}}
	got, err := (&ask.Request{ID: "1", Network: a, Known: known("a", "b"), Targets: toWeb, Silence: never}).Send(t.Context())
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "group.web") {
		t.Errorf("error is %v, not %v", err, broken)
	}
	if len(got.Answers) != 1 {
		t.Errorf("what had come is lost: %+v", got)
	}
}

func TestFailed(t *testing.T) {
	state := func(t model.Transaction) model.EnsureResponse {
		return model.EnsureResponse{Phase: model.EnsureDone, State: &t}
	}
	for name, c := range map[string]struct {
		answer  model.EnsureResponse
		failed  bool
		outcome model.Outcome
	}{
		"done":      {state(model.Transaction{}), false, model.OutcomeStable},
		"changed":   {state(model.Transaction{Changed: true}), false, model.OutcomeChanged},
		"failed":    {state(model.Transaction{Failed: true}), true, model.OutcomeFailed},
		"unmet":     {state(model.Transaction{UnmetRequirements: []model.Ref{{Type: "file", Name: "a"}}}), true, model.OutcomeUnmet},
		"not run":   {state(model.Transaction{NotRun: true}), true, model.OutcomeNotRun},
		"error":     {model.EnsureResponse{Error: "no such type"}, true, model.OutcomeFailed},
		"phase":     {model.EnsureResponse{Phase: model.EnsureFailed}, true, "failed"},
		"expired":   {model.EnsureResponse{Phase: model.EnsureExpired}, true, "expired"},
		"cancelled": {model.EnsureResponse{Phase: model.EnsureCancelled, Error: "cancelled by ann"}, true, model.OutcomeNotRun},
		"at work":   {model.EnsureResponse{Phase: model.EnsureRunning}, false, "running"},
	} {
		if got := ask.Failed(c.answer); got != c.failed {
			t.Errorf("%s: failed is %v", name, got)
		}
		if got := view.OutcomeOf(c.answer); got != c.outcome {
			t.Errorf("%s: outcome is %s", name, got)
		}
	}
}

// An unfinished node that reported a failure counts once.
func TestFailuresCountNodes(t *testing.T) {
	r := ask.Ensured{
		Answers: []model.EnsureResponse{{Node: "a", Phase: model.EnsureRunning, Error: "no"}, {Node: "b", Phase: model.EnsureRunning}, {Node: "c", Phase: model.EnsureFailed}, {Node: "d", Phase: model.EnsureDone}},
		Missing: []string{"e"}, Unfinished: []string{"a", "b"},
	}
	if got := r.Failures(); got != 4 {
		t.Errorf("%d nodes failed", got)
	}
}

// TestSendAsksNodesTogether: many named nodes are one question.
func TestSendAsksNodesTogether(t *testing.T) {
	a := &network{answers: map[string][]model.EnsureResponse{"group.web": {response("c", model.EnsureDone)}, "node.a": {response("a", model.EnsureDone)}, "node.b": {response("b", model.EnsureDone)}}}
	got, err := (&ask.Request{ID: "1", Network: a, Known: known("c"), Targets: append(toWeb, fleet.Target{Node: "a"}, fleet.Target{Node: "b"}), Silence: never}).Send(t.Context())
	slices.Sort(a.sent)
	if err != nil || !got.OK() || len(got.Answers) != 3 || !slices.Equal(a.sent, []string{"group.web", "node.a node.b"}) {
		t.Errorf("got %+v %v, sent to %q", got, err, a.sent)
	}
}

// TestSendWaitsForTheConnection: a node is not silent while the connection is lost.
func TestSendWaitsForTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		n := &network{held: true, patience: func() time.Duration {
			if times++; times > 3 {
				return 0
			}
			return time.Minute
		}}
		began := time.Now()
		got, err := (&ask.Request{ID: "1", Network: n, Known: known("a"), Targets: toWeb, Silence: time.Millisecond}).Send(t.Context())
		if took := time.Since(began); err != nil || took != 3*time.Minute+time.Millisecond || len(got.Missing) != 1 {
			t.Errorf("after %s %+v %v", took, got, err)
		}
	})
}

// TestFirstOnlyWithoutSilence: each node counts once, the errors of sending are returned, and missing nodes are awaited
// until the context ends.
func TestFirstOnlyWithoutSilence(t *testing.T) {
	all, broken := fleet.Target{Group: model.GroupAll}, errors.New("broken")
	answers := func(names ...string) (out []model.EnsureResponse) {
		for _, name := range names {
			out = append(out, model.EnsureResponse{Node: name})
		}
		return out
	}
	for name, c := range map[string]struct {
		targets []fleet.Target
		network *network
		known   []string
		here    []string
		missing []string
		took    time.Duration
	}{
		"all answer":          {targets: []fleet.Target{all}, network: &network{held: true, answers: map[string][]model.EnsureResponse{"group.all": answers("b", "a")}}, known: []string{"a", "b"}, here: []string{"b", "a"}},
		"one does not":        {targets: []fleet.Target{all}, network: &network{held: true, answers: map[string][]model.EnsureResponse{"group.all": answers("a")}}, known: []string{"a", "b", "c"}, here: []string{"a"}, missing: []string{"b", "c"}, took: time.Minute},
		"no node is known":    {targets: []fleet.Target{all}, network: &network{held: true, answers: map[string][]model.EnsureResponse{"group.all": answers("x")}}, here: []string{"x"}, took: time.Minute},
		"a name is unknown":   {targets: []fleet.Target{{Node: "x"}}, network: &network{held: true}, known: []string{"a"}, missing: []string{"x"}, took: time.Minute},
		"in several targets":  {targets: []fleet.Target{{Node: "a"}, all}, network: &network{held: true, answers: map[string][]model.EnsureResponse{"group.all": answers("a", "b"), "node.a": answers("a")}}, known: []string{"a", "b"}, here: []string{"a", "b"}},
		"the question failed": {targets: []fleet.Target{all}, network: &network{err: broken, answers: map[string][]model.EnsureResponse{"group.all": answers("a")}}, known: []string{"a", "b"}, here: []string{"a"}, missing: []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				began := time.Now()
				var here []string
				r := ask.Request{Network: c.network, Targets: c.targets, Known: known(c.known...), FirstOnly: true, Silence: ask.NoSilence, OnAnswer: func(r model.EnsureResponse) { here = append(here, r.Node) }}
				got, err := r.Send(ctx)
				if !slices.Equal(here, c.here) || len(got.Answers) != len(c.here) || !slices.Equal(got.Missing, c.missing) || !errors.Is(err, c.network.err) {
					t.Errorf("answered %v, missing %v, %v", here, got.Missing, err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
			})
		})
	}
}
