package agent_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// runRequest gives a run request.
func (n *node) runRequest(id string, change func(*model.RunRequest)) []byte {
	n.t.Helper()
	r := model.RunRequest{Protocol: model.ProtocolRunRequest, ID: id, Expires: time.Now().Add(2 * time.Minute).UTC()}
	if change != nil {
		change(&r)
	}
	data, err := json.Marshal(r)
	if err != nil {
		n.t.Fatal(err)
	}

	return data
}

// askRun requests a run of the assignments.
func (n *node) askRun(data []byte) *answers {
	a := &answers{}
	n.agent.Requests().Run(n.t.Context(), nil, data, a.respond)
	n.after(runner.Patience)

	return a
}

// spoil changes a file without an event.
func (n *node) spoil(name, content string) {
	n.t.Helper()
	if err := os.WriteFile(n.path(name), []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// words are the runs of an answer.
func words(r model.EnsureResponse) string {
	var out []string
	for _, run := range r.Runs {
		word := run.Manifest + " " + string(run.Outcome)
		if run.Error != "" {
			word += ": " + run.Error
		}
		out = append(out, word)
	}

	return strings.Join(out, "; ")
}

// TestARunIsAskedFor: of all assignments, and of some. A repeated request starts no second run.
func TestARunIsAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.one", "a", "one")
		n.put("group.web.two", "b", "two")
		n.after(time.Second)
		n.take()
		n.spoil("a", "drifted")
		n.spoil("b", "drifted")

		some := n.runRequest("r1", func(r *model.RunRequest) { r.Manifests = []string{"two"} })
		a := n.askRun(some)
		if got := a.last(); a.phases() != "acknowledged running done" || words(got) != "group.web.two changed" || got.Protocol != model.ProtocolRunResponse || got.Runs[0].Counts.Changed != 1 || got.Runs[0].RunID == "" {
			t.Errorf("answered %s, %+v", a.phases(), got)
		}
		n.has("a", "drifted")
		n.has("b", "two")
		reports := n.take()
		if len(reports) != 3 || reports[0].Cause != model.CauseRequest || reports[1].CorrelationID != "r1" || reports[1].Kind != model.KindRun || reports[2].Outcome != model.OutcomeChanged || reports[2].CorrelationID != "r1" || reports[2].Cause != model.CauseRequest {
			t.Errorf("reported %+v", reports)
		}

		n.spoil("b", "drifted")
		for range 2 {
			if again := n.askRun(some); again.phases() != "done" {
				t.Errorf("the same again is answered with %s", again.phases())
			}
			n.stop()
			n.start()
			n.spoil("b", "drifted") // the start runs all
		}
		n.take()

		a = n.askRun(n.runRequest("r2", nil))
		if got := words(a.last()); got != "group.all.one stable; group.web.two changed" || a.last().Phase != model.EnsureDone {
			t.Errorf("all came to %s", got)
		}
		for name, c := range map[string]struct {
			change func(*model.RunRequest)
			phase  model.EnsurePhase
			why    string
		}{
			"unknown manifest": {func(r *model.RunRequest) { r.Manifests = []string{"two", "three"} }, model.EnsureFailed, "three: not assigned"},
			"expired":          {func(r *model.RunRequest) { r.Expires = time.Now().Add(-time.Minute) }, model.EnsureExpired, "the node's clock is at"},
			"without an end":   {func(r *model.RunRequest) { r.Expires = time.Time{} }, model.EnsureFailed, "expires"},
			"no name":          {func(r *model.RunRequest) { r.Manifests = []string{"*"} }, model.EnsureFailed, "name"},
			"another document": {func(r *model.RunRequest) { r.Protocol = model.ProtocolEnsureRequest }, model.EnsureFailed, "protocol"},
		} {
			a := n.askRun(n.runRequest("x "+name, c.change))
			if got := a.last(); got.Phase != c.phase || !strings.Contains(got.Error, c.why) || len(got.Runs) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
		}
	})
}

// TestAnAskedRunFails with the error of its manifest, and with why one is not active.
func TestAnAskedRunFails(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.bad", n.failing(1))
		n.bucket.put("group.all.garbage", "muster: [")
		n.put("group.all.good", "a", "one")
		n.after(3 * time.Second)
		n.take()
		a := n.askRun(n.runRequest("r1", nil))
		n.after(3 * time.Second)
		got := a.last()
		if got.Phase != model.EnsureFailed || len(got.Runs) != 3 || got.Runs[0].Outcome != model.OutcomeFailed || got.Runs[0].Error == "" ||
			got.Runs[1].Outcome != model.OutcomeNotRun || !strings.HasPrefix(got.Runs[1].Error, model.LateRejected) || got.Runs[2].Outcome != model.OutcomeStable {
			t.Errorf("answered %s, %+v", got.Phase, got)
		}
		if transactions, _ := n.result(); transactions != 1 {
			t.Errorf("%d results are reported, although somebody asked for them", transactions)
		}
	})
}

// TestWhatDoesNotApplyIsNotAskedFor: a run of all skips manifests that are inapplicable, expired or
// overridden. A run by name reports them as skipped.
func TestWhatDoesNotApplyIsNotAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.elsewhere", n.assignment("when: \"false\"", n.manifest("a", "elsewhere")))
		n.bucket.put("group.all.old", n.assignment("expires: 2000-01-01T00:00:00Z", n.manifest("c", "old")))
		n.settle()
		n.take()
		for name, noop := range map[string]bool{"run": false, "noop": true} {
			if got := n.askRun(n.runRequest("none "+name, func(r *model.RunRequest) { r.Noop = noop })).last(); got.Phase != model.EnsureDone || len(got.Runs) != 0 {
				t.Errorf("%s of nothing that applies: %+v", name, got)
			}
		}
		n.put("group.all.one", "b", "all")
		n.put("group.web.one", "b", "web")
		n.after(time.Second)
		n.take()
		for name, noop := range map[string]bool{"run": false, "noop": true} {
			if got := n.askRun(n.runRequest(name, func(r *model.RunRequest) { r.Noop = noop })).last(); got.Phase != model.EnsureDone || words(got) != "group.web.one stable" {
				t.Errorf("%s of all: %+v", name, got)
			}
		}
		named := n.runRequest("named", func(r *model.RunRequest) { r.Manifests = []string{"one"} })
		if got := n.askRun(named).last(); got.Phase != model.EnsureDone || words(got) != "group.web.one stable" {
			t.Errorf("by its name: %+v", got)
		}
		named = n.runRequest("inapplicable", func(r *model.RunRequest) { r.Manifests = []string{"one", "elsewhere"} })
		if got := n.askRun(named).last(); got.Phase != model.EnsureDone || words(got) != "group.all.elsewhere skipped; group.web.one stable" {
			t.Errorf("one that does not apply: %+v", got)
		}
	})
}

// TestAskedInNoop shows the predicted changes and has no further effect.
func TestAskedInNoop(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.one", "a", "one")
		n.put("group.web.two", "b", "two")
		n.after(time.Second)
		n.take()
		n.spoil("a", "drifted")
		before := n.agent.State().Manifests
		a := n.askRun(n.runRequest("r1", func(r *model.RunRequest) { r.Noop = true }))
		if got := a.last(); a.phases() != "acknowledged running done" || words(got) != "group.all.one noop; group.web.two stable" || !got.Runs[0].Noop {
			t.Errorf("answered %s, %+v", a.phases(), got)
		}
		n.has("a", "drifted")
		n.tells("transaction noop file#a", "run noop group.all.one request", "run stable group.web.two request", "ensure noop")
		for key, s := range n.agent.State().Manifests {
			if s.Outcome != before[key].Outcome || !s.At.Equal(before[key].At) {
				t.Errorf("the state of %s is %+v", key, s)
			}
		}
		n.after(n.config.Interval.Std() + time.Minute)
		n.has("a", "one")
	})
}

// TestAskedWhilePaused: it is refused with why; in noop it is answered.
func TestAskedWhilePaused(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		n.control(n.own(model.ControlPause), pausing(0))
		n.spoil("a", "other")
		n.take()
		if a := n.askRun(n.runRequest("r1", nil)); a.phases() != "failed" || !strings.Contains(a.last().Error, "paused by ann: disk") {
			t.Errorf("answered %s, %+v", a.phases(), a.last())
		}
		a := n.askRun(n.runRequest("r2", func(r *model.RunRequest) { r.Noop = true }))
		if got := words(a.last()); got != "group.all.files noop" || a.last().Phase != model.EnsureDone {
			t.Errorf("in noop: %s, %+v", got, a.last())
		}
		n.has("a", "other")
	})
}

// TestRunsAskedForDuringARun become one run after it. A pause in between refuses them.
func TestRunsAskedForDuringARun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.controlled = true
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.long", s.manifest("a", "wait"))
		<-s.begun
		n.take()
		first, second := n.askRun(n.runRequest("r1", nil)), n.askRun(n.runRequest("r2", nil))
		if first.phases() != "acknowledged" || second.phases() != "acknowledged" {
			t.Errorf("during the run: %s and %s", first.phases(), second.phases())
		}
		s.release <- struct{}{}
		n.after(time.Second)
		for _, a := range []*answers{first, second} {
			if a.phases() != "acknowledged running done" || a.last().Runs[0].RunID != first.last().Runs[0].RunID {
				t.Errorf("after it: %s, %+v", a.phases(), a.last())
			}
		}
		n.tells("transaction changed slow#wait", "run changed group.all.long manifest", "run stable group.all.long request", "ensure stable", "ensure stable")

		s.forget("wait")
		third := n.askRun(n.runRequest("r3", nil))
		<-s.begun
		fourth := n.askRun(n.runRequest("r4", nil))
		n.control(n.own(model.ControlPause), pausing(0))
		if got := fourth.last(); got.Phase != model.EnsureFailed || !strings.Contains(got.Error, "paused") {
			t.Errorf("the one that a pause overtook: %+v", got)
		}
		s.release <- struct{}{}
		n.settle()
		if got := words(third.last()); got != "group.all.long changed" {
			t.Errorf("the one that had begun: %s", got)
		}
	})
}

// TestTrustOfRunRequests: they are signed like ensure requests, and one signature is for one verb.
func TestTrustOfRunRequests(t *testing.T) {
	alice, eve := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		n.bucket.put(motd, n.signedFile(motd, "motd", "by alice", nil, alice))
		n.settle()
		n.take()
		sign := func(by *signed.Signer, request []byte, change func(*signed.Statement)) []byte {
			s := signed.Statement{Action: signed.Run, Target: "group.web", Content: string(request)}
			if change != nil {
				change(&s)
			}
			return signtest.Sign(t, s, by)
		}
		n.spoil("motd", "drifted")
		for name, c := range map[string]struct {
			data   []byte
			reason string
		}{
			"unsigned":          {n.runRequest("r1", nil), "muster fleet run --sign-key FILE signs it"},
			"wrong key":         {sign(eve, n.runRequest("r2", nil), nil), "is not a trusted key"},
			"another node's":    {sign(alice, n.runRequest("r3", nil), func(s *signed.Statement) { s.Target = "node.web02" }), "signed for something else"},
			"another fleet's":   {sign(alice, n.runRequest("r4", nil), func(s *signed.Statement) { s.Fleet = "test" }), "signed for something else"},
			"an ensure request": {sign(alice, n.runRequest("r5", nil), func(s *signed.Statement) { s.Action = signed.Ensure }), "to ensure, not to run"},
			"without an id":     {sign(alice, n.runRequest("", nil), nil), "needs an id"},
			"of the future":     {sign(alice, n.runRequest("r6", nil), func(s *signed.Statement) { s.Issued = time.Now().Add(time.Hour) }), "signed in the future"},
			"expired":           {sign(alice, n.runRequest("r7", nil), func(s *signed.Statement) { s.Issued = time.Now().Add(-2 * time.Hour) }), "the signature expired"},
			"valid for longer":  {sign(alice, n.runRequest("r8", nil), func(s *signed.Statement) { s.Expires = time.Now().Add(25 * time.Hour) }), "at most 24h"},
		} {
			if got := n.askRun(c.data).last(); got.Phase != model.EnsureFailed || !strings.Contains(got.Error, c.reason) {
				t.Errorf("%s: %+v", name, got)
			}
			n.has("motd", "drifted")
		}
		// It asks for no resource, whatever it says.
		if got := n.ask(sign(alice, n.request("r9", "evil", "x", ""), nil)).last(); !strings.Contains(got.Error, "to run, not to ensure") {
			t.Errorf("an ensure request signed as a run: %+v", got)
		}
		n.lacks("evil")
		good := sign(alice, n.runRequest("good", nil), func(s *signed.Statement) { s.Expires = time.Now().Add(24 * time.Hour) })
		if got := n.askRun(good).last(); got.Phase != model.EnsureDone || words(got) != motd+" changed" {
			t.Errorf("the good one: %+v", got)
		}
		n.has("motd", "by alice")
		runs := func() (count int) {
			for _, r := range n.take() {
				if r.Kind == model.KindRun && r.Cause == model.CauseRequest {
					count++
				}
			}
			return count
		}
		runs()
		// Replayed while it is valid, and after a restart.
		for range 2 {
			n.askRun(good)
			n.stop()
			n.start()
			n.askRun(good)
		}
		if got := runs(); got != 0 {
			t.Errorf("a replay made %d runs", got)
		}
	})
}

// TestARestartKeepsRunRequests that had not begun.
func TestARestartKeepsRunRequests(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.long", s.manifest("a", "wait"))
		<-s.begun
		a := n.askRun(n.runRequest("r1", func(r *model.RunRequest) { r.Manifests = []string{"long"} }))
		if a.phases() != "acknowledged" {
			t.Fatal(a.phases())
		}
		go func() { s.release <- struct{}{} }()
		n.stop()
		// The run may end before the agent shuts down; then it is done and reported.
		reported := n.take()
		n.start()
		n.after(3 * time.Second)
		asked := 0
		for _, r := range append(reported, n.take()...) {
			if r.Kind == model.KindEnsure && r.CorrelationID == "r1" && r.Outcome != model.OutcomeFailed {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("%d answers are reported", asked)
		}
	})
}
