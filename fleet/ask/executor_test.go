package ask_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/fleet/ask"

	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/webfleet"
)

// executor returns an executor over count nodes, and its backend.
func executor(t *testing.T, nodes int) (*ask.Executor, *webfleet.Backend) {
	t.Helper()
	f := webfleet.New(webfleet.Sample(nodes, time.Now()), time.Now)
	backend := &webfleet.Backend{Fleet: f}
	x := ask.NewExecutor(ask.ExecutorOptions{Model: f, Backend: backend, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(x.Close)

	return x, backend
}

func on(node string) ask.Target { return ask.Target{Nodes: []string{node}} }

// done runs an action until it ends.
func done(t *testing.T, x *ask.Executor, o ask.Spec) ask.Action {
	t.Helper()
	a, err := x.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	a, _ = x.Wait(t.Context(), a.ID)

	return a
}

// TestPauseAndResume: an action ends when the nodes confirm it, and documents name the user.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	until := time.Now().Add(time.Hour)
	a := done(t, x, ask.Spec{Kind: ask.Pause, Target: on("web000"), By: "anna\x00\u202e", Reason: "disk", Until: until, Expect: ask.Expect{Nodes: 1}})
	if !a.OK() || a.By != "anna" || a.Nodes != 1 || len(a.Results) != 1 || a.Results[0].Text != "paused" {
		t.Errorf("pause: %+v", a)
	}
	a = done(t, x, ask.Spec{Kind: ask.Resume, Target: ask.Target{On: `state == "paused"`}, By: "anna"})
	if !a.OK() || len(a.Results) != 1 || a.Results[0].Text != "resumed" {
		t.Errorf("resume: %+v", a)
	}
	a = done(t, x, ask.Spec{Kind: ask.Resume, Target: on("web000"), By: "anna"})
	if !a.OK() || a.Results[0].Text != "was not paused" {
		t.Errorf("once more: %+v", a)
	}
	a = done(t, x, ask.Spec{Kind: ask.Pause, Target: ask.Target{Group: "db"}, By: "bob", Expect: ask.Expect{Nodes: 4}})
	if !a.OK() || a.Nodes != 4 {
		t.Errorf("pause of a group: %+v", a)
	}
	a = done(t, x, ask.Spec{Kind: ask.Resume, Target: on("db001"), By: "anna"})
	if a.OK() || a.Results[0].Text != "is paused by group.db.pause, not by its own pause" {
		t.Errorf("resume of a node whose group is paused: %+v", a)
	}
	if got := strings.Join(backend.Done(), "\n"); got != "pause node.web000 by anna (dashboard): disk\nresume node.web000 by anna (dashboard)\npause group.db by bob (dashboard): " {
		t.Errorf("it did\n%s", got)
	}
	if all := x.Actions(); len(all) != 5 || all[0].Kind != ask.Resume || all[4].By != "anna" || all[0].Results != nil {
		t.Errorf("%+v", all)
	}
}

// TestNodesThatDoNot: a node that rejects the change or does not confirm it in time is no success.
func TestNodesThatDoNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x, backend := executor(t, 20)
		backend.Deaf = true
		backend.Fleet.Change(func(data *webfleet.Data) {
			nodes := append([]model.Node{}, data.Nodes...)
			for i := range nodes {
				switch nodes[i].Node {
				case "web000":
					nodes[i].RejectedControl = map[string]string{"node.web000.pause": "not signed"}
				case "db001":
					nodes[i].Silent = true
				}
			}
			data.Nodes = nodes
		})
		a := done(t, x, ask.Spec{Kind: ask.Pause, Target: ask.Target{Nodes: []string{"web000", "db001", "edge002"}}, By: "anna", Expect: ask.Expect{Nodes: 3}})
		x.Close()
		got := map[string]ask.State{}
		for _, r := range a.Results {
			got[r.Node] = r.State
		}
		if a.OK() || got["web000"] != ask.StateFailed || got["db001"] != ask.StateUnreachable || got["edge002"] != ask.StatePending || a.Results[0].Node != "web000" {
			t.Errorf("%+v", a)
		}
		if len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "--sign-key") {
			t.Errorf("%q", a.Notes)
		}
	})
}

// TestRun: a run names the user and has the result of each node.
func TestRun(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 120)
	a := done(t, x, ask.Spec{Kind: ask.Run, Target: ask.Target{On: "true"}, By: "anna", Manifests: []string{"base"}, Noop: true, All: true})
	if !strings.HasSuffix(a.Request, " by anna") || a.Nodes != 120 || a.Results[0].State != ask.StateFailed || len(a.Results[0].Runs) == 0 || a.OK() {
		t.Errorf("%+v", a)
	}
	counts := map[ask.State]int{}
	for _, s := range a.States {
		counts[s.State] = s.Nodes
	}
	if counts[ask.StateUnreachable] != 3 || counts[ask.StateDone]+counts[ask.StateFailed] != 117 {
		t.Errorf("%v", counts)
	}
	if got := backend.Done(); len(got) != 1 || !strings.HasPrefix(got[0], "run 120 nodes, [base], noop true, ") {
		t.Errorf("%q", got)
	}
	backend.Denied = errors.New("it is no administrator")
	if _, err := x.Start(ask.Spec{Kind: ask.Run, Target: on("web000"), By: "anna"}); err == nil || err.Error() != "it is no administrator" {
		t.Error(err)
	}
	if _, err := x.Start(ask.Spec{Kind: ask.Resume, Target: on("web000"), By: "anna"}); err != nil {
		t.Error(err)
	}
}

// TestFailures are not hidden.
func TestFailures(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Err = errors.New("no permission to publish")
	for _, o := range []ask.Spec{{Kind: ask.Pause, Target: on("web000")}, {Kind: ask.Pause, Target: ask.Target{Group: "db"}}, {Kind: ask.Run, Target: on("web000")}} {
		o.By = "anna"
		a := done(t, x, o)
		if a.OK() || !strings.Contains(fmt.Sprint(a.Error, a.Results), "no permission to publish") {
			t.Errorf("%s of %s: %+v", o.Kind, o.Target, a)
		}
	}
}

// TestAway: no action starts while NATS is away, and the error reports that.
func TestAway(t *testing.T) {
	t.Parallel()
	f := webfleet.New(webfleet.Sample(20, time.Now()), time.Now)
	backend := &webfleet.Backend{Fleet: f}
	x := ask.NewExecutor(ask.ExecutorOptions{Model: f, Backend: backend, Log: slog.New(slog.DiscardHandler), Away: func() error { return errors.New("nats: server is disconnected") }})
	t.Cleanup(x.Close)
	for kind, want := range map[ask.Kind]string{
		ask.Pause: "NATS cannot be reached (nats: server is disconnected): not written",
		ask.Run:   "NATS cannot be reached (nats: server is disconnected): no node was asked",
	} {
		if _, err := x.Start(ask.Spec{Kind: kind, Target: on("web000"), By: "anna"}); !errors.Is(err, ask.ErrAway) || err.Error() != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := x.Start(ask.Spec{Kind: ask.Pause, Target: on("nope"), By: "anna"}); !errors.Is(err, ask.ErrNobody) {
		t.Errorf("of nobody: %v", err)
	}
	if did, all := backend.Done(), x.Actions(); len(did) > 0 || len(all) > 0 {
		t.Errorf("it did %q, %+v", did, all)
	}
}

// TestRefusedActions lists invalid actions.
func TestRefusedActions(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	long := strings.Repeat("x", 600)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("web%03d", i)
	}
	for what, c := range map[string]struct {
		spec ask.Spec
		is   error
		text string
	}{
		"no target":        {ask.Spec{Kind: ask.Pause}, nil, "name one target"},
		"two targets":      {ask.Spec{Kind: ask.Pause, Target: ask.Target{Group: "db", On: "true"}}, nil, "name one target"},
		"wrong name":       {ask.Spec{Kind: ask.Pause, Target: on("web.000")}, nil, "letters, digits"},
		"wrong group":      {ask.Spec{Kind: ask.Pause, Target: ask.Target{Group: "a.b"}}, nil, "letters, digits"},
		"many names":       {ask.Spec{Kind: ask.Pause, Target: ask.Target{Nodes: many}}, nil, "use a target expression"},
		"unknown node":     {ask.Spec{Kind: ask.Pause, Target: on("nope")}, ask.ErrNobody, "node nope is unknown"},
		"empty group":      {ask.Spec{Kind: ask.Pause, Target: ask.Target{Group: "nope"}}, ask.ErrNobody, "group nope"},
		"nobody matches":   {ask.Spec{Kind: ask.Resume, Target: ask.Target{On: `node == "nope"`}}, ask.ErrNobody, ""},
		"all":              {ask.Spec{Kind: ask.Resume, Target: ask.Target{On: "true"}}, ask.ErrAll, "20"},
		"group all":        {ask.Spec{Kind: ask.Resume, Target: ask.Target{Group: "all"}}, ask.ErrAll, "20"},
		"others":           {ask.Spec{Kind: ask.Resume, Target: ask.Target{Group: "db"}, Expect: ask.Expect{Nodes: 5}}, ask.ErrOthers, "4 instead of 5"},
		"nothing shown":    {ask.Spec{Kind: ask.Resume, Target: on("web000"), Expect: ask.Expect{Digest: "none"}}, ask.ErrOthers, ""},
		"over":             {ask.Spec{Kind: ask.Pause, Target: on("web000"), Until: time.Now().Add(-time.Second)}, nil, "would end in the past"},
		"long reason":      {ask.Spec{Kind: ask.Pause, Target: on("web000"), Reason: long}, nil, "reason must be one line"},
		"lines":            {ask.Spec{Kind: ask.Pause, Target: on("web000"), Reason: "a\nb"}, nil, "reason must be one line"},
		"wrong manifest":   {ask.Spec{Kind: ask.Run, Target: on("web000"), Manifests: []string{"node.a.b"}}, nil, "a manifest's name has letters"},
		"long run":         {ask.Spec{Kind: ask.Run, Target: on("web000"), Within: time.Hour}, nil, "between 1s and 10m0s"},
		"unknown":          {ask.Spec{Kind: "erase", Target: on("web000")}, nil, "unknown action"},
		"wrong expression": {ask.Spec{Kind: ask.Resume, Target: ask.Target{On: "grop()"}}, nil, "grop"},
	} {
		o := c.spec
		o.By = "anna"
		if what != "others" && what != "nothing shown" {
			o.Expect = ask.Expect{}
		}
		_, err := x.Start(o)
		var refused *ask.Refusal
		var wrong *targets.Error
		if err == nil || c.is != nil && !errors.Is(err, c.is) || c.is == nil && !errors.As(err, &refused) && !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := x.Start(ask.Spec{Kind: ask.Resume, Target: on("web000"), By: " \x01"}); err == nil {
		t.Error("nobody acts")
	}
	if got := backend.Done(); len(got) > 0 || len(x.Actions()) > 0 {
		t.Errorf("it did %q", got)
	}
}

// TestTheSameNodes: if one node left and another joined, the number is the same but the action is refused.
func TestTheSameNodes(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	db := ask.Target{Group: "db"}
	shown, err := x.Match(db)
	if err != nil || len(shown.Nodes) != 4 {
		t.Fatal(shown, err)
	}
	pause := ask.Spec{Kind: ask.Pause, Target: db, By: "anna", Expect: ask.Expect{Nodes: 4, Digest: shown.Digest()}}
	backend.Fleet.SetGroups("db001", "edge")
	backend.Fleet.SetGroups("web000", "db")
	for _, expect := range []int{4, 0} {
		pause.Expect.Nodes = expect
		if _, err := x.Start(pause); !errors.Is(err, ask.ErrOthers) || !strings.Contains(err.Error(), "not the same 4 nodes") {
			t.Errorf("other nodes: %v", err)
		}
	}
	backend.Fleet.SetGroups("web000", "web")
	backend.Fleet.SetGroups("db001", "db", "edge")
	if a := done(t, x, pause); !a.OK() {
		t.Errorf("the nodes that were shown: %+v", a)
	}
	if got := strings.Join(backend.Done(), "\n"); got != "pause group.db by anna (dashboard): " {
		t.Errorf("it did\n%s", got)
	}
}

// TestFewAtOnce: a fifth action at once is refused, and the last 50 actions are known.
func TestFewAtOnce(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Held = make(chan struct{})
	o := ask.Spec{Kind: ask.Run, Target: on("web000"), By: "anna"}
	var first ask.Action
	for i := range 4 {
		o.By = []string{"anna", "bob"}[i%2]
		a, err := x.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = a
		}
	}
	o.By = "carl"
	if _, err := x.Start(o); !errors.Is(err, ask.ErrBusy) || strings.Count(err.Error(), "run of web000 by ") != 4 || !strings.Contains(err.Error(), "run of web000 by anna since "+first.Begun.UTC().Format("15:04:05 MST")) {
		t.Errorf("the fifth: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if a, known := x.Wait(ended, first.ID); !known || !a.Ended.IsZero() {
		t.Errorf("it waits: %+v", a)
	}
	close(backend.Held)
	if a, _ := x.Wait(t.Context(), first.ID); a.Ended.IsZero() {
		t.Errorf("it has not ended: %+v", a)
	}
	for range 60 {
		for {
			a, err := x.Start(o)
			if err == nil {
				x.Wait(t.Context(), a.ID)
				break
			}
			if !errors.Is(err, ask.ErrBusy) { // the others have not ended yet
				t.Fatal(err)
			}
		}
	}
	if n := len(x.Actions()); n != 50 {
		t.Errorf("%x are known", n)
	}
	if _, known := x.Action(first.ID); known {
		t.Error("the first one is known")
	}
}

// TestPlacesAreShared: one user has at most two actions in progress.
func TestPlacesAreShared(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Held = make(chan struct{})
	start := func(by string) error {
		_, err := x.Start(ask.Spec{Kind: ask.Run, Target: ask.Target{On: `node == "web000" || node == "` + strings.Repeat("x", 500) + `"`}, By: by})
		return err
	}
	for range 2 {
		if err := start("anna"); err != nil {
			t.Fatal(err)
		}
	}
	if err := start("anna"); !errors.Is(err, ask.ErrBusy) || !strings.Contains(err.Error(), "2 of anna are in progress") || len(err.Error()) > 600 {
		t.Errorf("the third: %v", err)
	}
	if err := start("bob"); err != nil {
		t.Errorf("of another: %v", err)
	}
	close(backend.Held)
	for _, a := range x.Actions() {
		x.Wait(t.Context(), a.ID)
	}
	x.Close() // waits until the actions have ended
}

// TestPlacesAreOfSomebody: a chosen name neither raises the limit of a user nor counts for another user.
func TestPlacesAreOfSomebody(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Held = make(chan struct{})
	defer close(backend.Held)
	for i, c := range []struct {
		by, share string
		busy      bool
	}{{"anna", "1", false}, {"carl", "1", false}, {"dora", "1", true}, {"anna", "2", false}} {
		_, err := x.Start(ask.Spec{Kind: ask.Run, Target: on("web000"), By: c.by, Share: c.share})
		if errors.Is(err, ask.ErrBusy) != c.busy || !c.busy && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestCancel: any operator may cancel an action, which no longer counts. Nodes continue a started run.
func TestCancel(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Held = make(chan struct{})
	o := ask.Spec{Kind: ask.Run, Target: on("web000"), By: "anna"}
	for range 5 {
		a, err := x.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Cancel(a.ID, "bob\x00"); err != nil {
			t.Fatal(err)
		}
		a, _ = x.Wait(t.Context(), a.ID)
		if a.Ended.IsZero() || a.OK() || a.CancelledBy != "bob" || a.Error != "cancelled by bob" || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "muster fleet run --cancel '"+a.Request+"'") {
			t.Errorf("%+v", a)
		}
		if again, err := x.Cancel(a.ID, "carl"); err != nil || again.CancelledBy != "bob" {
			t.Errorf("once more: %+v, %v", again, err)
		}
	}
	if _, err := x.Cancel("nope", "bob"); !errors.Is(err, ask.ErrUnknown) {
		t.Error(err)
	}
	close(backend.Held)
	a := done(t, x, o)
	if a, err := x.Cancel(a.ID, "bob"); err != nil || a.CancelledBy != "" || a.Error != "" {
		t.Errorf("one that has ended: %+v, %v", a, err)
	}
}

// TestACancelIsOneWordOfAShell: the displayed command quotes the user name, which users may choose at some OpenID Connect
// providers.
func TestACancelIsOneWordOfAShell(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Held = make(chan struct{})
	for _, by := range []string{"x'; touch /tmp/x; '", "$(id)", "`id`", "anna"} {
		a, err := x.Start(ask.Spec{Kind: ask.Run, Target: on("web000"), By: by})
		if err == nil {
			_, err = x.Cancel(a.ID, "bob")
		}
		if err != nil {
			t.Fatal(err)
		}
		a, _ = x.Wait(t.Context(), a.ID)
		_, line, _ := strings.Cut(a.Notes[0], "muster fleet run --cancel ")
		line, _, _ = strings.Cut(line, " cancels it, with")
		if words, err := shellquote.Split(line); err != nil || len(words) != 1 || words[0] != a.Request || !strings.HasSuffix(words[0], " by "+by) || strings.HasPrefix(line, "\"") {
			t.Errorf("%q: %q, %v", line, words, err)
		}
	}
}

// TestACancelledPause: written changes stay, and the other nodes do not change.
func TestACancelledPause(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 200)
	backend.Deaf = true
	a, err := x.Start(ask.Spec{Kind: ask.Pause, Target: ask.Target{On: "true"}, By: "anna", All: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Cancel(a.ID, "anna"); err != nil {
		t.Fatal(err)
	}
	a, _ = x.Wait(t.Context(), a.ID)
	if a.CancelledBy != "anna" || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "written changes stay") {
		t.Errorf("%+v", a)
	}
	for _, r := range a.Results {
		if strings.Contains(r.Text, "context") {
			t.Errorf("%+v", r)
		}
	}
}

// silentNodes is a backend whose nodes do not answer before the end.
type silentNodes struct{ *webfleet.Backend }

func (s silentNodes) Run(ctx context.Context, _ model.Sender, nodes []model.Node, _ model.RunRequest, answered func(model.EnsureResponse)) (*ask.Ensured, error) {
	answered(model.EnsureResponse{Node: "evil", Phase: model.EnsureDone})
	<-ctx.Done()
	return &ask.Ensured{Missing: []string{nodes[0].Node}}, nil
}

func (s silentNodes) Preview(ctx context.Context, nodes []model.Node, _ model.PreviewRequest, _ func(model.EnsureResponse)) (*ask.PreviewResult, error) {
	<-ctx.Done()
	return &ask.PreviewResult{Missing: []string{nodes[0].Node}, Unfinished: []string{nodes[1].Node}}, nil
}

// TestACancelSaysNothingOfNodes: nodes of a cancelled request are neither unreachable nor late. A node without a request
// is not listed.
func TestACancelSaysNothingOfNodes(t *testing.T) {
	t.Parallel()
	f := webfleet.New(webfleet.Sample(20, time.Now()), time.Now)
	x := ask.NewExecutor(ask.ExecutorOptions{Model: f, Backend: silentNodes{&webfleet.Backend{Fleet: f}}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(x.Close)
	for kind, want := range map[ask.Kind]string{ask.Run: "[{no result 2}]", ask.Preview: "[{running 1} {no result 1}]"} {
		a, err := x.Start(ask.Spec{Kind: kind, Target: ask.Target{Nodes: []string{"web000", "db001"}}, By: "anna", Expect: ask.Expect{Nodes: 2}, Previewed: &ask.Previewed{Name: "motd", Value: "muster: {}"}})
		if err == nil {
			_, err = x.Cancel(a.ID, "bob")
		}
		if err != nil {
			t.Fatal(err)
		}
		if a, _ = x.Wait(t.Context(), a.ID); fmt.Sprint(a.States) != want {
			t.Errorf("%s: %v", kind, a.States)
		}
	}
}

// TestClose: actions end with the server and report that. No action starts after it.
func TestClose(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 20)
	backend.Held = make(chan struct{})
	a, err := x.Start(ask.Spec{Kind: ask.Run, Target: on("web000"), By: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	if a, _ := x.Action(a.ID); a.Ended.IsZero() {
		t.Errorf("%+v", a)
	}
	if _, err := x.Start(ask.Spec{Kind: ask.Resume, Target: on("web000"), By: "anna"}); !errors.Is(err, ask.ErrBusy) {
		t.Error(err)
	}
}

// TestAnswersAreBounded: an action stores little of long answers.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 400)
	huge := strings.Repeat("x", 1<<11)
	backend.Fleet.Change(func(data *webfleet.Data) {
		nodes := append([]model.Node{}, data.Nodes...)
		for i := range nodes {
			all := map[string]model.ManifestState{}
			for k := range 20 {
				all[fmt.Sprintf("node.%s.m%d%s", nodes[i].Node, k, huge)] = model.ManifestState{Outcome: model.OutcomeFailed, Error: huge}
			}
			nodes[i].Manifests = all
		}
		data.Nodes = nodes
	})
	a := done(t, x, ask.Spec{Kind: ask.Run, Target: ask.Target{On: "true"}, By: "anna", All: true})
	if len(a.Results) != 200 || a.More != 200 {
		t.Errorf("%x results, %x more", len(a.Results), a.More)
	}
	if size := len(fmt.Sprint(a)); size > 4<<20 {
		t.Errorf("it has %x bytes", size)
	}
}

// planned is a backend with this result of previews.
type planned struct {
	*webfleet.Backend
	found *ask.PreviewResult
}

func (p planned) Preview(context.Context, []model.Node, model.PreviewRequest, func(model.EnsureResponse)) (*ask.PreviewResult, error) {
	return p.found, nil
}

// TestPlansAreBounded: an action stores little of long plans, and not the previewed value.
func TestPlansAreBounded(t *testing.T) {
	t.Parallel()
	found := &ask.PreviewResult{}
	for i := range 400 {
		g := ask.Group{Outcome: ask.WouldChange, Nodes: []string{fmt.Sprintf("node%03d", i)}, Plan: &model.Plan{Counts: model.Counts{Changed: 1}}}
		switch i {
		case 0: // 256 KiB are many that are empty
			g.Plan.Transactions = make([]model.Transaction, 80_000)
		case 1:
			g = ask.Group{Outcome: ask.NotKnown, Nodes: g.Nodes, Error: strings.Repeat("x", 1<<20)}
		}
		found.Groups = append(found.Groups, g)
	}
	f := webfleet.New(webfleet.Sample(400, time.Now()), time.Now)
	x := ask.NewExecutor(ask.ExecutorOptions{Model: f, Backend: planned{&webfleet.Backend{Fleet: f}, found}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(x.Close)
	written := &ask.Previewed{Name: "motd", Value: "muster: {resources: []}"}
	a := done(t, x, ask.Spec{Kind: ask.Preview, Target: on("web000"), By: "anna", Previewed: written})
	if len(a.Plans) != 30 || cap(a.Plans) > 64 || a.MorePlans != 370 {
		t.Errorf("%x plans of %x, %x more", len(a.Plans), cap(a.Plans), a.MorePlans)
	}
	text, err := json.Marshal(a.Plans)
	if err != nil || len(text) > 2<<20 {
		t.Errorf("they have %x bytes, %v", len(text), err)
	}
	if g := a.Plans[0]; g.Outcome != ask.WouldChange || g.Plan != nil || !strings.Contains(g.Error, "too long") {
		t.Errorf("of one that is too long: %+v", g)
	}
	if a.Plans[2].Plan != found.Groups[2].Plan {
		t.Error("a short one is not kept")
	}
	if a.Previewed.Value != "" || a.Previewed.Name != "motd" || written.Value == "" {
		t.Errorf("of what was written: %+v", a.Previewed)
	}
}

// panics is a backend whose previews panic.
type panics struct{ *webfleet.Backend }

func (panics) Preview(context.Context, []model.Node, model.PreviewRequest, func(model.EnsureResponse)) (*ask.PreviewResult, error) {
	panic("of an answer that nobody foresaw")
}

// TestAPanicEndsOneAction: a panic fails only its action.
func TestAPanicEndsOneAction(t *testing.T) {
	t.Parallel()
	f := webfleet.New(webfleet.Sample(20, time.Now()), time.Now)
	x := ask.NewExecutor(ask.ExecutorOptions{Model: f, Backend: panics{&webfleet.Backend{Fleet: f}}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(x.Close)
	for range 5 { // the failed actions no longer count
		a := done(t, x, ask.Spec{Kind: ask.Preview, Target: on("web000"), By: "anna", Previewed: &ask.Previewed{Name: "motd", Value: "muster: {}"}})
		if a.Ended.IsZero() || a.OK() || !strings.Contains(a.Error, "nobody foresaw") {
			t.Errorf("%+v", a)
		}
	}
	if a := done(t, x, ask.Spec{Kind: ask.Pause, Target: on("web000"), By: "anna"}); !a.OK() {
		t.Errorf("%+v", a)
	}
}

// sized returns a manifest of n bytes.
func sized(n int) string {
	const manifest = "muster: {}\n#"

	return manifest + strings.Repeat("x", n-len(manifest))
}

// TestPreviewsOfManyNodesAreShort: the size of a preview is limited by the number of nodes, because each node receives a
// message.
func TestPreviewsOfManyNodesAreShort(t *testing.T) {
	t.Parallel()
	x, backend := executor(t, 600)
	o := ask.Spec{Kind: ask.Preview, Target: ask.Target{On: "true"}, By: "anna", Previewed: &ask.Previewed{Name: "motd", Value: sized(ask.MaxPreviewed)}}
	var refused *ask.Refusal
	if _, err := x.Start(o); !errors.As(err, &refused) || !strings.Contains(err.Error(), "600 nodes") || len(backend.Done()) > 0 {
		t.Errorf("it was sent: %v", err)
	}
	o.Previewed = &ask.Previewed{Name: "motd", Value: sized(64 << 10)}
	if a := done(t, x, o); a.Error != "" || len(backend.Done()) != 1 {
		t.Errorf("a shorter one was not: %+v", a.Error)
	}
}

// TestSpecsHaveNothingElse: fields that the kind does not have are not stored.
func TestSpecsHaveNothingElse(t *testing.T) {
	t.Parallel()
	x, _ := executor(t, 20)
	long := strings.Repeat("x", 60_000)
	for _, k := range []ask.Kind{ask.Run, ask.Resume, ask.Preview} {
		o := ask.Spec{Kind: k, Target: on("web000"), By: "anna", Reason: long, Until: time.Now().Add(time.Hour), Previewed: &ask.Previewed{Name: "motd", Value: "muster: {}"}}
		if k != ask.Run {
			o.Manifests = []string{long}
		}
		if a := done(t, x, o); a.Reason != "" || !a.Until.IsZero() || len(a.Manifests) > 0 || (a.Previewed == nil) != (k != ask.Preview) {
			t.Errorf("%s: %+v", k, a.Spec)
		}
	}
}

// TestAPauseThatEndsSooner: a pause that ends sooner does not confirm a new pause.
func TestAPauseThatEndsSooner(t *testing.T) {
	t.Parallel()
	for until, want := range map[time.Duration]ask.State{time.Hour: ask.StatePending, 2 * time.Hour: ask.StateDone, 3 * time.Hour: ask.StateDone, 0: ask.StateDone} {
		synctest.Test(t, func(t *testing.T) {
			x, backend := executor(t, 20)
			backend.Deaf = true
			now := time.Now()
			other := &model.Paused{From: "group.web.pause", At: now}
			if until > 0 {
				other.Until = now.Add(until)
			}
			backend.Fleet.Change(func(data *webfleet.Data) {
				nodes := append([]model.Node{}, data.Nodes...)
				for i := range nodes {
					if nodes[i].Node == "web000" {
						nodes[i].Paused = other
					}
				}
				data.Nodes = nodes
			})
			a := done(t, x, ask.Spec{Kind: ask.Pause, Target: on("web000"), By: "anna", Until: now.Add(2 * time.Hour)})
			x.Close()
			if len(a.Results) != 1 || a.Results[0].State != want {
				t.Errorf("the other ends after %s: %+v", until, a.Results)
			}
		})
	}
}

// TestParseUntil lists the forms of the end of a pause.
func TestParseUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "90m": now.Add(90 * time.Minute), " 2h ": now.Add(2 * time.Hour), "3d": now.AddDate(0, 0, 3), "2026-02-01T00:00:00+01:00": time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC), "2026-02-01T00:00Z": time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := ask.ParseUntil(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"soon", "-2h", "0d", "2026-02-01", "99999999d"} {
		if got, err := ask.ParseUntil(text, now); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}
