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

// never is a silence that no test waits for.
const never = time.Hour

// asker answers as its targets say; one that is held gives nothing more until
// the context ends.
type asker struct {
	answers map[fleet.Target][]model.EnsureResponse
	held    bool
	err     error

	mu      sync.Mutex
	asked   []model.EnsureRequest
	awaited []string
}

func (a *asker) Ask(ctx context.Context, target fleet.Target, awaited []string, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	a.mu.Lock()
	a.asked, a.awaited = append(a.asked, req), append(a.awaited, awaited...)
	a.mu.Unlock()

	return func(yield func(model.EnsureResponse, error) bool) {
		for _, r := range a.answers[target] {
			if !yield(r, nil) {
				return
			}
		}
		if a.err != nil && !yield(model.EnsureResponse{}, a.err) {
			return
		}
		if a.held {
			<-ctx.Done()
		}
	}
}

func response(node string, phase model.EnsurePhase) model.EnsureResponse {
	r := model.EnsureResponse{Node: node, Phase: phase, ID: "1"}
	if phase == model.EnsureDone {
		r.State = &model.Transaction{Type: "exec", Name: "uptime", Changed: true}
	}

	return r
}

// nodes are those of a fleet, which are all in the group web.
type nodes []model.Node

func (n nodes) Nodes(context.Context) ([]model.Node, error) { return n, nil }

// noNodes is a fleet whose nodes cannot be read.
type noNodes struct{ err error }

func (n noNodes) Nodes(context.Context) ([]model.Node, error) { return nil, n.err }

func known(names ...string) nodes {
	var all nodes
	for _, name := range names {
		all = append(all, model.Node{NodeState: model.NodeState{Node: name, Groups: []string{"web"}}})
	}

	return all
}

var toWeb = []fleet.Target{{Group: "web"}}

func TestEnsureGathers(t *testing.T) {
	a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {
		response("b", model.EnsureAcknowledged), response("a", model.EnsureAcknowledged), response("a", model.EnsureRunning),
		{Node: "a", ID: "other", Phase: model.EnsureFailed},
		response("a", model.EnsureDone), response("a", model.EnsureFailed), response("b", model.EnsureDone),
	}}}
	var progress []ask.Progress
	var answered []string
	e := ask.Ensurer{Asker: a, Nodes: known("a", "b"), Silence: never,
		OnProgress: func(p ask.Progress) { progress = append(progress, p) },
		OnAnswer:   func(r model.EnsureResponse) { answered = append(answered, r.Node+" "+string(r.Phase)) },
	}
	got, err := e.Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1", Type: "exec"})
	if err != nil || !got.OK() || len(got.Answers) != 2 || got.Answers[0].Node != "a" || got.Answers[0].Phase != model.EnsureDone {
		t.Errorf("got %+v %v", got, err)
	}
	if !reflect.DeepEqual(answered, []string{"a done", "b done"}) {
		t.Errorf("answered %v", answered)
	}
	if progress[0] != (ask.Progress{Expected: 2}) || progress[len(progress)-1] != (ask.Progress{Expected: 2, Acknowledged: 2, Finished: 2}) {
		t.Errorf("progress %v", progress)
	}
	if len(a.asked) != 1 || a.asked[0].Type != "exec" {
		t.Errorf("asked %v", a.asked)
	}
}

// TestEnsureAwaitsWhoWasThereLately: nobody waits for nodes that stopped, or that are silent.
func TestEnsureAwaitsWhoWasThereLately(t *testing.T) {
	all := known("a", "stopped", "silent", "db")
	all[1].Event, all[2].Silent, all[3].Groups = model.NodeStopped, true, nil
	a := &asker{}
	if _, err := (&ask.Ensurer{Asker: a, Nodes: all}).Ensure(t.Context(), append(toWeb, fleet.Target{Node: "db"}, fleet.Target{Node: "x"}), model.EnsureRequest{}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(a.awaited)
	if !slices.Equal(a.awaited, []string{"a", "db"}) {
		t.Errorf("awaited %v", a.awaited)
	}
}

// TestEnsureWaitsLongerForWhoIsThere: the others may just be back, and get less time.
func TestEnsureWaitsLongerForWhoIsThere(t *testing.T) {
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
			a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: c.answers}}
			begun := time.Now()
			got, err := (&ask.Ensurer{Asker: a, Nodes: all}).Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
			if took := time.Since(begun); err != nil || took != c.want || len(got.Missing) != 3-len(c.answers) {
				t.Errorf("%s: after %s %+v, %v", name, took, got, err)
			}
		})
	}
}

// TestEnsureOnce: the first answer of a node counts, also where others could follow.
func TestEnsureOnce(t *testing.T) {
	a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {
		response("a", model.EnsureRunning), response("a", model.EnsureDone), response("b", model.EnsureCancelled),
	}}}
	got, err := (&ask.Ensurer{Asker: a, Nodes: known("a", "b"), Silence: never, Once: true}).Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
	if want := map[string]ask.State{"a": ask.StateRunning, "b": ask.StateCancelled}; err != nil || !maps.Equal(got.NodeStates(), want) || got.OK() {
		t.Errorf("got %+v %v", got, err)
	}
}

// A node in two targets is asked twice and answers for both; it counts once.
func TestEnsureSeveralTargets(t *testing.T) {
	a := &asker{held: true, answers: map[fleet.Target][]model.EnsureResponse{
		{Group: "web"}: {response("a", model.EnsureDone)}, {Node: "a"}: {response("a", model.EnsureDone)}, {Node: "x"}: {response("x", model.EnsureDone)},
	}}
	got, err := (&ask.Ensurer{Asker: a, Nodes: known("a"), Silence: never}).Ensure(t.Context(), append(toWeb, fleet.Target{Node: "a"}, fleet.Target{Node: "x"}), model.EnsureRequest{ID: "1"})
	if err != nil || !got.OK() || len(got.Answers) != 2 || len(a.asked) != 3 {
		t.Errorf("got %+v %v", got, err)
	}
}

func TestEnsureNamesWhoDoesNotAnswer(t *testing.T) {
	answers := map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {response("a", model.EnsureDone), response("b", model.EnsureAcknowledged)}}
	want := func(t *testing.T, got *ask.Ensured, err error) {
		t.Helper()
		if err != nil || got.OK() || !reflect.DeepEqual(got.Missing, []string{"c", "gone"}) || !reflect.DeepEqual(got.Unfinished, []string{"b"}) {
			t.Errorf("got %+v %v", got, err)
		}
	}
	targets := append(toWeb, fleet.Target{Node: "gone"})
	t.Run("when nothing more can come", func(t *testing.T) {
		e := ask.Ensurer{Asker: &asker{answers: answers}, Nodes: known("c", "b", "a"), Silence: never}
		got, err := e.Ensure(t.Context(), targets, model.EnsureRequest{ID: "1"})
		want(t, got, err)
	})
	t.Run("when the time is over", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		e := ask.Ensurer{Asker: &asker{answers: answers, held: true}, Nodes: known("c", "b", "a"), Silence: never, OnProgress: func(p ask.Progress) {
			if p.Acknowledged == 2 {
				cancel()
			}
		}}
		got, err := e.Ensure(ctx, targets, model.EnsureRequest{ID: "1"})
		want(t, got, err)
	})
	t.Run("named while the request waits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var silent []string
		e := ask.Ensurer{Asker: &asker{held: true}, Nodes: known("c", "a"), Silence: never, Quiet: time.Millisecond, OnSilent: func(nodes []string) {
			silent = nodes
			cancel()
		}}
		if _, err := e.Ensure(ctx, toWeb, model.EnsureRequest{ID: "1"}); err != nil || !slices.Equal(silent, []string{"a", "c"}) {
			t.Errorf("silent: %q, %v", silent, err)
		}
	})
	t.Run("after their silence", func(t *testing.T) {
		done := map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {response("a", model.EnsureDone)}}
		e := ask.Ensurer{Asker: &asker{answers: done, held: true}, Nodes: known("c", "a"), Silence: time.Millisecond}
		// The silence may be over before the answer is taken, so only what does not
		// depend on it is judged.
		got, err := e.Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
		if err != nil || got.OK() || got.Missing[len(got.Missing)-1] != "c" {
			t.Errorf("got %+v %v", got, err)
		}
	})
}

// Nodes that nobody knows of are taken too; that none answers is not OK.
func TestEnsureUnknownNodes(t *testing.T) {
	a := &asker{answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {response("new", model.EnsureDone)}}}
	got, err := (&ask.Ensurer{Asker: a, Nodes: known(), Silence: never}).Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
	if err != nil || !got.OK() || got.Answers[0].Node != "new" {
		t.Errorf("got %+v %v", got, err)
	}
	none, err := (&ask.Ensurer{Asker: &asker{}, Nodes: known(), Silence: never}).Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
	if err != nil || none.OK() {
		t.Errorf("nobody: %+v %v", none, err)
	}
}

func TestEnsureErrors(t *testing.T) {
	broken := errors.New("broken")
	_, err := (&ask.Ensurer{Asker: &asker{}, Nodes: noNodes{broken}}).Ensure(t.Context(), toWeb, model.EnsureRequest{})
	if !errors.Is(err, broken) {
		t.Fatalf("error is %v, not %v", err, broken)
	}
	a := &asker{err: broken, answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {response("a", model.EnsureDone)}}}
	got, err := (&ask.Ensurer{Asker: a, Nodes: known("a", "b"), Silence: never}).Ensure(t.Context(), toWeb, model.EnsureRequest{ID: "1"})
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

// manyAsker asks nodes as one question.
type manyAsker struct {
	*asker
	together []string
}

func (a *manyAsker) AskNodes(_ context.Context, nodes []string, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	a.together = nodes

	return func(yield func(model.EnsureResponse, error) bool) {
		for _, n := range nodes {
			if !yield(response(n, model.EnsureDone), nil) {
				return
			}
		}
	}
}

// A node that says that it failed, and does not finish, is one that failed.
func TestFailuresCountNodes(t *testing.T) {
	r := ask.Ensured{
		Answers: []model.EnsureResponse{{Node: "a", Phase: model.EnsureRunning, Error: "no"}, {Node: "b", Phase: model.EnsureRunning}, {Node: "c", Phase: model.EnsureFailed}, {Node: "d", Phase: model.EnsureDone}},
		Missing: []string{"e"}, Unfinished: []string{"a", "b"},
	}
	if got := r.Failures(); got != 4 {
		t.Errorf("%d nodes failed", got)
	}
}

// TestEnsureAsksNodesTogether: many nodes are one question, where the asker can.
func TestEnsureAsksNodesTogether(t *testing.T) {
	a := &manyAsker{asker: &asker{answers: map[fleet.Target][]model.EnsureResponse{{Group: "web"}: {response("c", model.EnsureDone)}}}}
	got, err := (&ask.Ensurer{Asker: a, Nodes: known("c"), Silence: never}).Ensure(t.Context(), append(toWeb, fleet.Target{Node: "a"}, fleet.Target{Node: "b"}), model.EnsureRequest{ID: "1"})
	if err != nil || !got.OK() || len(got.Answers) != 3 || len(a.asked) != 1 || !reflect.DeepEqual(a.together, []string{"a", "b"}) {
		t.Errorf("got %+v %v, together %v", got, err, a.together)
	}
}

// patientAsker answers once more time was asked for, as after a connection was lost.
type patientAsker struct {
	*asker
	asked chan struct{}
	times int
}

func (a *patientAsker) Patience() time.Duration {
	if a.times++; a.times > 1 {
		return 0
	}
	close(a.asked)

	return never
}

func (a *patientAsker) Ask(context.Context, fleet.Target, []string, model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		<-a.asked
		yield(response("a", model.EnsureDone), nil)
	}
}

// TestEnsureWaitsForTheConnection: a node is not silent that nobody could ask.
func TestEnsureWaitsForTheConnection(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := &patientAsker{asker: &asker{}, asked: make(chan struct{})}
	got, err := (&ask.Ensurer{Asker: a, Nodes: known("a"), Silence: time.Millisecond}).Ensure(ctx, toWeb, model.EnsureRequest{ID: "1"})
	if err != nil || !got.OK() {
		t.Errorf("got %+v %v", got, err)
	}
}
