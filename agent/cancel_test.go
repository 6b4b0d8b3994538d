package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// cancelRequest gives the cancel of a request by ann.
func (n *node) cancelRequest(id string, change func(*model.CancelRequest)) []byte {
	n.t.Helper()
	c := model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: id, By: "ann", Expires: time.Now().Add(2 * time.Minute).UTC()}
	if change != nil {
		change(&c)
	}
	data, err := json.Marshal(c)
	if err != nil {
		n.t.Fatal(err)
	}

	return data
}

// kill cancels with an abort of the current command.
func kill(c *model.CancelRequest) { c.Kill = true }

// slowRequest gives a request of the slow type.
func slowRequest(id, name string) []byte {
	return []byte(strings.NewReplacer(`"r1"`, `"`+id+`"`, `"wait"`, `"`+name+`"`).Replace(waiting))
}

// isCancelled expects that a request was cancelled by ann.
func isCancelled(t *testing.T, a *answers, phases string) {
	t.Helper()
	if got := a.last(); a.phases() != phases || got.Phase != model.EnsureCancelled || got.Error != "cancelled by ann" {
		t.Errorf("answered %s, %+v, want %s", a.phases(), got, phases)
	}
}

// TestCancelWhatWaits for another run: it is not executed, also after a restart, and its one
// result says who cancelled it.
func TestCancelWhatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		first := n.ask([]byte(waiting))
		<-s.begun
		second := n.ask(slowRequest("r2", "other"))
		n.after(runner.Patience)
		if second.phases() != "acknowledged" {
			t.Fatal(second.phases())
		}
		n.take()
		cancel := n.ask(n.cancelRequest("r2", nil))
		isCancelled(t, second, "acknowledged cancelled")
		isCancelled(t, cancel, "cancelled")
		reports := n.take()
		if len(reports) != 1 || reports[0].Kind != model.KindEnsure || reports[0].Outcome != model.OutcomeNotRun || reports[0].CorrelationID != "r2" {
			t.Fatalf("reported %+v", reports)
		}
		var told model.EnsureResponse
		if n.decode(reports[0], &told); told.Phase != model.EnsureCancelled || told.Error != "cancelled by ann" {
			t.Errorf("the stream has %+v", told)
		}
		s.release <- struct{}{}
		n.after(runner.Patience)
		if first.phases() != "acknowledged running done" {
			t.Errorf("the other one: %s", first.phases())
		}
		n.take()
		for range 2 {
			isCancelled(t, n.ask(slowRequest("r2", "other")), "cancelled")
			isCancelled(t, n.ask(n.cancelRequest("r2", nil)), "cancelled")
			n.stop()
			n.start()
		}
		if len(s.begun) != 0 {
			t.Error("it was executed")
		}
		for _, r := range n.take() {
			if r.Kind == model.KindEnsure {
				t.Errorf("reported again: %+v", r)
			}
		}
	})
}

// TestCancelARun that waits for the run in progress.
func TestCancelARun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.long", s.manifest("a", "wait"))
		<-s.begun
		n.take()
		a := n.askRun(n.runRequest("r1", nil))
		isCancelled(t, n.ask(n.cancelRequest("r1", kill)), "cancelled")
		isCancelled(t, a, "acknowledged cancelled")
		s.release <- struct{}{}
		n.after(time.Second)
		n.tells("ensure notrun", "transaction changed slow#wait", "run changed group.all.long manifest")
		isCancelled(t, a, "acknowledged cancelled")

		// A started request finishes its current run and starts no other.
		n.bucket.put("group.all.second", s.manifest("b", "wait2"))
		<-s.begun
		s.release <- struct{}{}
		n.after(time.Second)
		s.forget("wait")
		s.forget("wait2")
		a = n.askRun(n.runRequest("r2", nil))
		<-s.begun
		cancel := n.ask(n.cancelRequest("r2", kill))
		if cancel.phases() != "running" {
			t.Errorf("one that runs is answered with %s", cancel.phases())
		}
		s.release <- struct{}{}
		n.after(time.Second)
		if got := words(a.last()); got != "group.all.long changed; group.all.second notrun: cancelled by ann" || a.last().Phase != model.EnsureFailed {
			t.Errorf("came to %s, %+v", got, a.last())
		}
	})
}

// TestCancelWhatRuns: the change in hand is finished, or with a kill broken off.
func TestCancelWhatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		for name, c := range map[string]struct {
			change func(*model.CancelRequest)
			ends   func()
			phase  model.EnsurePhase
			why    string
		}{
			"finished":   {nil, func() { s.release <- struct{}{} }, model.EnsureDone, ""},
			"broken off": {kill, func() {}, model.EnsureFailed, "cancelled by ann"},
		} {
			s.forget("wait")
			a := n.ask(slowRequest(name, "wait"))
			<-s.begun
			cancel := n.ask(n.cancelRequest(name, c.change))
			c.ends()
			n.settle()
			last := a.last()
			if want := "acknowledged running " + string(c.phase); a.phases() != want || cancel.phases() != "running "+string(c.phase) || last.State == nil || !strings.Contains(strings.Join(last.State.Errors, " "), c.why) {
				t.Errorf("%s: %s, the cancel %s, %+v", name, a.phases(), cancel.phases(), last.State)
			}
			// A finished request reports its result to every later cancel.
			again := n.ask(n.cancelRequest(name, c.change))
			if got := again.last(); again.phases() != string(c.phase) || got.State == nil || got.State.Failed != last.State.Failed {
				t.Errorf("%s, and again: %s, %+v", name, again.phases(), got)
			}
			n.after(runner.Patience)
		}
	})
}

// TestCancelBeforeTheChange: a resource that is still observed is not changed.
func TestCancelBeforeTheChange(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		s.takes = time.Hour
		n.start()
		n.take()
		a := n.ask(slowRequest("r1", "look"))
		if a.phases() != "acknowledged running" {
			t.Fatal(a.phases())
		}
		cancel := n.ask(n.cancelRequest("r1", nil))
		isCancelled(t, a, "acknowledged running cancelled")
		isCancelled(t, cancel, "running cancelled")
		n.tells("ensure notrun")
	})
}

// TestCancelOvertakesItsRequest: the request is not executed, also after a restart. A request that waited in
// the stream gets the stored result.
func TestCancelOvertakesItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		isCancelled(t, n.ask(n.cancelRequest("live", nil)), "cancelled")
		n.tells()
		n.command(n.cancelRequest("queued", nil))
		n.tells("ensure notrun")
		n.stop()
		n.start()
		n.take()
		n.command(n.cancelRequest("queued", nil)) // it comes again
		n.tells()
		for _, id := range []string{"live", "queued"} {
			isCancelled(t, n.ask(n.request(id, "motd", "x", "")), "cancelled")
			n.tells("ensure notrun")
		}
	})
}

// TestCancelIsRejected with a reason and without a phase, which belongs to the request.
func TestCancelIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.ask([]byte(waiting))
		<-s.begun
		held := n.ask(slowRequest("r2", "other"))
		n.after(runner.Patience)
		n.take()
		for name, c := range map[string]struct {
			change func(*model.CancelRequest)
			why    string
		}{
			"expired":       {func(c *model.CancelRequest) { c.Expires = time.Now().Add(-time.Minute) }, "the cancel expired"},
			"no end":        {func(c *model.CancelRequest) { c.Expires = time.Time{} }, "no time after which it expires"},
			"of two lines":  {func(c *model.CancelRequest) { c.By = "ann\nbob" }, "one line"},
			"of no request": {func(c *model.CancelRequest) { c.Request = "" }, "id of a request"},
		} {
			data := n.cancelRequest("r2", c.change)
			a := n.ask(data)
			if got := a.last(); a.phases() != "" || !strings.Contains(got.Error, c.why) {
				t.Errorf("%s: %s, %+v", name, a.phases(), got)
			}
			n.command(data)
		}
		// Without a record it would be executed after a restart.
		requests := filepath.Join(n.state, "requests")
		if err := os.Rename(requests, requests+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(requests, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"r2", "unknown"} {
			if got := n.ask(n.cancelRequest(id, nil)).last(); got.Phase != "" || !strings.Contains(got.Error, "cannot be stored") {
				t.Errorf("%s: %+v", id, got)
			}
			if err := n.agent.Requests().Command(t.Context(), nil, "x", n.cancelRequest(id, nil)); err == nil {
				t.Errorf("%s: the command does not come again", id)
			}
		}
		if err := os.Remove(requests); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(requests+".away", requests); err != nil {
			t.Fatal(err)
		}
		if held.phases() != "acknowledged" {
			t.Errorf("it is %s", held.phases())
		}
		n.tells()
		isCancelled(t, n.ask(n.cancelRequest("r2", nil)), "cancelled")
		s.release <- struct{}{}
		n.settle()
	})
}

// TestTrustOfCancels: they are signed like requests, and one signature is for one of them.
func TestTrustOfCancels(t *testing.T) {
	alice, eve := signtest.Signer(t), signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.trusts(1, alice)
		n.start()
		n.take()
		sign := func(by *signed.Signer, action signed.Action, content []byte, change func(*signed.Statement)) []byte {
			s := signed.Statement{Action: action, Target: "group.web", Content: string(content)}
			if change != nil {
				change(&s)
			}
			return signtest.Sign(t, s, by)
		}
		cancel := n.cancelRequest("r1", nil)
		for name, c := range map[string]struct {
			data   []byte
			reason string
		}{
			"unsigned":        {cancel, "muster fleet ensure cancel --sign-key FILE signs it"},
			"wrong key":       {sign(eve, signed.Cancel, cancel, nil), "is not a trusted key"},
			"another node's":  {sign(alice, signed.Cancel, cancel, func(s *signed.Statement) { s.Target = "node.web02" }), "signed for something else"},
			"another group's": {sign(alice, signed.Cancel, cancel, func(s *signed.Statement) { s.Target = "group.db" }), "signed for something else"},
			"another fleet's": {sign(alice, signed.Cancel, cancel, func(s *signed.Statement) { s.Fleet = "test" }), "signed for something else"},
			"of the future":   {sign(alice, signed.Cancel, cancel, func(s *signed.Statement) { s.Issued = time.Now().Add(time.Hour) }), "signed in the future"},
			"expired":         {sign(alice, signed.Cancel, cancel, func(s *signed.Statement) { s.Issued = time.Now().Add(-2 * time.Hour) }), "the signature expired"},
			"for a day":       {sign(alice, signed.Cancel, cancel, func(s *signed.Statement) { s.Expires = time.Now().Add(25 * time.Hour) }), "at most 24h"},
			"of a request":    {sign(alice, signed.Cancel, n.request("r1", "evil", "x", ""), nil), "invalid cancel"},
			"as a request":    {sign(alice, signed.Ensure, cancel, nil), "request"},
			"as a run":        {sign(alice, signed.Run, cancel, nil), "to run, not to ensure"},
		} {
			if got := n.ask(c.data).last(); !strings.Contains(got.Error, c.reason) || got.Phase == model.EnsureCancelled {
				t.Errorf("%s: %+v", name, got)
			}
			if err := n.agent.Requests().Command(t.Context(), nil, "queued "+name, c.data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			n.settle()
		}
		n.lacks("evil")
		a := n.ask(sign(alice, signed.Ensure, n.request("r1", "motd", "x", ""), nil))
		n.after(runner.Patience)
		if a.last().Phase != model.EnsureDone {
			t.Errorf("one of them cancelled it: %+v", a.last())
		}
		isCancelled(t, n.ask(sign(alice, signed.Cancel, n.cancelRequest("r2", nil), nil)), "cancelled")
		isCancelled(t, n.ask(sign(alice, signed.Ensure, n.request("r2", "evil", "x", ""), nil)), "cancelled")
		n.lacks("evil")
	})
}
