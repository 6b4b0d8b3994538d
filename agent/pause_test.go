package agent_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/signtest"
)

// withControl starts a node about which operators write, and which notices drift, with a file.
func withControl(t *testing.T, f func(t *testing.T, n *node)) {
	bubble(t, func(t *testing.T, n *node) {
		n.controlled = true
		n.watching()
		n.start()
		n.put("group.all.files", "a", "one")
		n.has("a", "one")
		n.take()
		f(t, n)
	})
}

// own is a control key of the node itself.
func (n *node) own(name string) string { return model.Key(model.NodeFamily(n.config.Node), name) }

// control writes a control key, empty deletes it.
func (n *node) control(key, value string) {
	n.t.Helper()
	var err error
	if bucket := kvstore.NewControl(n.nats.Store); value == "" {
		_, err = bucket.Delete(n.t.Context(), key, nil)
	} else {
		_, err = bucket.Put(n.t.Context(), key, []byte(value))
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.after(2 * time.Second) // the jitter of groups
}

// pausing is a pause for a time, zero for one without an end.
func pausing(d time.Duration) string {
	until := ""
	if d != 0 {
		until = fmt.Sprintf(`"until": %q,`, time.Now().Add(d).UTC().Format(time.RFC3339Nano))
	}

	return fmt.Sprintf(`{"protocol": "io.muster.v1.pause", %s "by": "ann", "reason": "disk"}`, until)
}

// isPaused fails unless the state of the node says which key pauses it, empty for none.
func (n *node) isPaused(from string) {
	n.t.Helper()
	got := ""
	if p := n.agent.State().Paused; p != nil {
		got = p.From
	}
	if got != from || (n.agent.Describe().Paused != nil) != (from != "") {
		n.t.Errorf("paused by %q, want %q", got, from)
	}
}

// TestAPauseThatIsOver is accepted, and the log does not say that it is in force.
func TestAPauseThatIsOver(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		key := n.own(model.ControlPause)
		n.control(key, pausing(-time.Hour))
		n.isPaused("")
		if log := n.log.String(); !strings.Contains(log, "control document accepted, the pause is over") || strings.Contains(log, "control document in force") {
			t.Errorf("the log has\n%s", log)
		}
	})
}

// TestAPausedNodeOnlyObserves: assignments and drift wait for the end of the pause, and requests are refused.
func TestAPausedNodeOnlyObserves(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		key := n.own(model.ControlPause)
		n.control(key, pausing(0))
		n.isPaused(key)
		n.write("a", "other")
		n.tells("transaction noop file#a", "run noop group.all.files drift")
		n.put("group.web.more", "b", "two")
		n.after(3 * n.config.Interval.Std())
		n.has("a", "other")
		n.lacks("b")
		state := n.agent.State()
		if files, more := state.Manifests["group.all.files"], state.Manifests["group.web.more"]; files.Outcome != model.OutcomeNoop || more.Outcome != "" || more.Revision == 0 {
			t.Errorf("the states are %+v and %+v", files, more)
		}
		a := n.ask(n.request("r1", "c", "asked", ""))
		if a.phases() != "failed" || !strings.Contains(a.last().Error, "paused by ann: disk") {
			t.Errorf("a request is answered with %+v", a.last())
		}
		if state := a.last().State; state == nil || state.Ref() != (model.Ref{Type: "file", Name: n.path("c")}) || !state.Failed {
			t.Errorf("what was refused is not said: %+v", state)
		}
		if a := n.ask(n.request("r2", "c", "asked", `"noop": true,`)); a.last().Phase != model.EnsureDone {
			t.Errorf("one in noop is answered with %+v", a.last())
		}
		n.lacks("c")
		check := func(id, kind, properties string) *answers {
			return n.ask(fmt.Appendf(nil, `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "id": %q, "type": %q, "check": true, "properties": %s}`, id, kind, properties))
		}
		if a := check("r4", "exec", `{"name": "/bin/true"}`); a.last().Phase != model.EnsureDone {
			t.Errorf("a command that only reads is answered with %+v", a.last())
		}
		if a := check("r5", "file", fmt.Sprintf(`{"name": %q, "ensure": "absent"}`, n.path("a"))); a.last().Phase != model.EnsureFailed {
			t.Errorf("a file that claims to be a command that only reads is answered with %+v", a.last())
		}
		n.has("a", "other")
		n.take()

		n.control(key, "")
		n.isPaused("")
		n.has("a", "one")
		n.has("b", "two")
		n.lacks("c")
		if a := n.ask(n.request("r3", "c", "asked", "")); a.last().Phase != model.EnsureDone {
			t.Errorf("a request afterwards is answered with %+v", a.last())
		}
		causes := map[string]int{}
		for _, line := range n.told() {
			causes[line]++
		}
		if causes["run changed group.web.more manifest"] != 1 || causes["run changed group.all.files schedule"] != 1 {
			t.Errorf("afterwards it reported %v", causes)
		}
	})
}

// TestAPausedNodeReportsDriftBesideACriticalCheck, which has its repair wait: that is made when
// the pause is over.
func TestAPausedNodeReportsDriftBesideACriticalCheck(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		c := &clinic{statuses: map[string]model.HealthStatus{}}
		n.checker, n.controlled = c, true
		n.config.HealthInterval = model.Duration(time.Minute)
		n.watching()
		n.start()
		exec := strings.TrimSuffix(strings.TrimPrefix(n.shop(), "muster: {resources: [{"), "}]}\n")
		n.bucket.put("group.all.shop", strings.Replace(n.manifest("a", "one"), "resources:\n", "resources:\n    - "+exec+"\n", 1))
		n.settle()
		n.control(n.own(model.ControlPause), pausing(0))
		c.set("http", model.HealthCritical)
		n.after(2 * time.Minute)
		n.take()
		n.write("a", "other")
		n.after(time.Minute)
		n.tells("transaction noop file#a", "run noop group.all.shop drift")
		n.after(3 * n.config.Interval.Std())
		n.has("a", "other")
		if n.restarts() > 0 {
			t.Error("what is critical was refreshed")
		}
		n.control(n.own(model.ControlPause), "")
		n.after(time.Minute)
		n.has("a", "one")
		if n.restarts() == 0 {
			t.Error("what is critical was not refreshed after the pause")
		}
	})
}

// TestAPauseEndsByItself, and of several the one counts that ends last.
func TestAPauseEndsByItself(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		n.control(n.own(model.ControlPause), pausing(time.Hour))
		n.control("group.web.pause", pausing(2*time.Hour))
		n.isPaused("group.web.pause")
		n.write("a", "other")
		n.after(time.Hour)
		n.isPaused("group.web.pause")
		n.has("a", "other")
		n.after(time.Hour)
		n.isPaused("")
		n.has("a", "one")
	})
}

// TestNoPauseIsMissed: a node that has not heard of a pause stays paused when another of its pauses ends.
func TestNoPauseIsMissed(t *testing.T) {
	const web, all = "group.web.pause", "group.all.pause"
	withControl(t, func(t *testing.T, n *node) {
		m, err := jsm.New(n.nats.Conn)
		if err != nil {
			t.Fatal(err)
		}
		stream, own := kvstore.KVStream(n.nats.Names.Control), n.own(model.ControlPause)
		announced := kvtest.Config(t, m, stream).RePublish
		unannounced := func(key, value string) {
			t.Helper()
			kvtest.Update(t, m, stream, func(c *api.StreamConfig) { c.RePublish = nil })
			n.control(key, value)
			kvtest.Update(t, m, stream, func(c *api.StreamConfig) { c.RePublish = announced })
		}
		n.control(own, pausing(0))
		n.isPaused(own)
		n.write("a", "other")
		unannounced(all, pausing(0))
		n.control(own, "")
		n.isPaused(all)
		n.after(time.Minute)
		n.isPaused(all)
		unannounced(web, pausing(0))
		unannounced(web, "")
		n.control(all, "")
		n.isPaused("")
		n.control(all, pausing(0))
		unannounced(all, "")
		n.control(own, pausing(0))
		n.control(own, "")
		n.after(10 * time.Minute) // an audit
		n.isPaused("")
		n.has("a", "one")
	})
}

// TestAPauseFollowsIntoAnotherGroup: a node that moves from one paused group to another runs nothing in between.
func TestAPauseFollowsIntoAnotherGroup(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		key := n.own(model.ControlGroups)
		n.control("group.one.pause", pausing(0))
		n.control("group.two.pause", pausing(0))
		n.control(key, groups("one"))
		n.isPaused("group.one.pause")
		n.write("a", "other")
		n.put("group.web.more", "b", "two")
		n.control(key, groups("two"))
		n.isPaused("group.two.pause")
		n.has("a", "other")
		n.lacks("b")
		n.control(key, groups("free"))
		n.isPaused("")
		n.has("b", "two")
	})
}

// TestAPauseIsKept over a restart, with a bucket that is gone, and without NATS; so are labels.
func TestAPauseIsKept(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		n.config.Labels = map[string]string{"rack": "a1", "row": "7"}
		key := n.own(model.ControlPause)
		n.control(key, pausing(0))
		n.control(n.own(model.ControlLabels), `{"protocol": "io.muster.v1.labels", "labels": {"rack": "a3"}}`)
		restart := func(what string) {
			n.stop()
			n.start()
			n.isPaused(key)
			if got := n.agent.State().Labels; !maps.Equal(got, map[string]string{"rack": "a3", "row": "7"}) {
				t.Errorf("%s: labels = %v", what, got)
			}
		}
		restart("restarted")
		if err := n.nats.JetStream().DeleteStream(t.Context(), kvstore.KVStream(n.nats.Names.Control)); err != nil {
			t.Fatal(err)
		}
		n.after(time.Hour)
		n.isPaused(key)
		restart("without the bucket")
		n.controlled = false // as without NATS: only the data on disk is known
		restart("without NATS")
		n.put("group.web.more", "b", "two")
		n.lacks("b")
	})
}

// TestAPauseIsKnownBeforeTheFirstRun of an agent that was away when it was put.
func TestAPauseIsKnownBeforeTheFirstRun(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		n.stop()
		n.control(n.own(model.ControlPause), pausing(0))
		n.bucket.put("group.all.files", n.manifest("a", "two"))
		n.start()
		n.after(time.Minute)
		n.has("a", "one")
		n.isPaused(n.own(model.ControlPause))
	})
}

// TestEachBadPauseIsShown: one of a group hides none of the node.
func TestEachBadPauseIsShown(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		own := n.own(model.ControlPause)
		n.control("group.all.pause", `{"until": 7}`)
		n.control(own, "none")
		text, rejected := n.agent.State().Message, n.agent.State().RejectedControl
		for _, key := range []string{"group.all.pause", own} {
			if !strings.HasPrefix(rejected[key], "invalid control document") {
				t.Errorf("%s is rejected for %q", key, rejected[key])
			}
			if !strings.Contains(text, "rejected: "+key+": invalid control document") {
				t.Errorf("%s is missing in %q", key, text)
			}
		}
	})
}

// TestABadPauseChangesNothing: the active pause stays, and the problem is reported once.
func TestABadPauseChangesNothing(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		key := n.own(model.ControlPause)
		n.control(key, `{"until": 7}`)
		n.isPaused("")
		n.after(time.Minute)
		n.tells("node refused")
		if text := n.agent.State().Message; !strings.Contains(text, key+": invalid control document") {
			t.Errorf("the message is %q", text)
		}
		n.control(key, pausing(0))
		n.isPaused(key)
		n.control(key, "none")
		n.isPaused(key)
		n.control(key, "")
		n.isPaused("")
		if text := n.agent.State().Message; text != "" {
			t.Errorf("the message is still %q", text)
		}
		n.control("group.db.pause", pausing(0)) // of a group that it is not in
		n.isPaused("")
	})
}

// TestSignedPauses: a node that demands signatures is paused and resumed by its keys only.
func TestSignedPauses(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		alice, eve := signtest.Signer(t), signtest.Signer(t)
		n.controlled = true
		n.trusts(1, alice)
		n.start()
		key, family := n.own(model.ControlPause), model.NodeFamily(n.config.Node)
		sign := func(action signed.Action, target string, by *signed.Signer) string {
			n.after(time.Second) // each later than the one before
			content := pausing(0)
			if action == signed.Resume {
				content = ""
			}
			return string(signtest.Sign(t, signed.Statement{Action: action, Target: target, Content: content}, by))
		}
		refuses := func(reason string) {
			t.Helper()
			if text := n.agent.State().Message; !strings.Contains(text, reason) {
				t.Errorf("the message is %q, want %q", text, reason)
			}
		}
		for reason, value := range map[string]string{
			"not signed":                pausing(0),
			"is not a trusted key":      sign(signed.Pause, family, eve),
			"signed for something else": sign(signed.Pause, "node.other", alice),
			"to ensure, not to pause":   sign(signed.Ensure, family, alice),
		} {
			n.control(key, value)
			n.isPaused("")
			refuses(reason)
		}
		first := sign(signed.Pause, family, alice)
		n.control(key, first)
		n.isPaused(key)
		n.control(key, "")
		n.isPaused(key)
		refuses("the end of the pause is not accepted: not signed")
		if _, err := kvstore.NewControl(n.nats.Store).Delete(t.Context(), key, []byte(sign(signed.Resume, family, alice))); err != nil {
			t.Fatal(err)
		}
		n.settle()
		n.isPaused("")
		n.control(key, first) // replayed
		n.isPaused("")
		refuses("older than an accepted signature")
		n.stop()
		n.start()
		n.isPaused("")
	})
}

// TestLabelsOfOperators win over labels of the configuration.
func TestLabelsOfOperators(t *testing.T) {
	withControl(t, func(t *testing.T, n *node) {
		key := n.own(model.ControlLabels)
		n.control(key, `{"protocol": "io.muster.v1.labels", "labels": {"rack": "a3"}}`)
		if got := n.agent.State().Labels; !maps.Equal(got, map[string]string{"rack": "a3"}) {
			t.Errorf("labels = %v", got)
		}
		n.control(key, "")
		if got := n.agent.State().Labels; len(got) > 0 {
			t.Errorf("labels = %v", got)
		}
		n.control("group.web.pause", pausing(0))
		n.config.Groups = []string{"db"}
		if _, _, err := n.agent.Reload(t.Context(), n.config); err != nil {
			t.Fatal(err)
		}
		n.after(time.Minute)
		n.isPaused("") // it is no member any more
		if matches, _ := filepath.Glob(filepath.Join(n.state, "control.json")); len(matches) != 1 {
			t.Error("nothing is kept")
		}
	})
}

// TestWhatIsInHandEndsWhenPaused, and what waits for it does not begin.
func TestWhatIsInHandEndsWhenPaused(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.controlled = true
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.long", s.manifest("a", "wait"))
		<-s.begun
		n.after(runner.Patience)
		mixed := strings.Replace(n.manifest("shared", "mixed"), "resources:\n", "resources:\n    - slow:\n        - second: {ensure: present}\n", 1)
		n.bucket.put("group.all.mixed", mixed)
		asked := n.ask([]byte(waiting))
		n.after(runner.Patience)
		n.take()
		n.control("group.all.pause", pausing(0))
		n.isPaused("group.all.pause")
		close(s.release)
		n.after(time.Minute)
		got := n.told()
		// The request continues after the run released its lock, before the run's end is reported.
		if at := slices.Index(got, "ensure failed"); at > 0 {
			got = append(slices.Delete(got, at, at+1), "ensure failed")
		}
		if want := []string{"transaction changed slow#wait", "run changed group.all.long manifest", "ensure failed"}; !slices.Equal(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
		if asked.phases() != "acknowledged failed" || !strings.Contains(asked.last().Error, "paused by ann") {
			t.Errorf("the request is answered with %+v", asked.last())
		}
		n.lacks("shared")
		n.control("group.all.pause", "")
		n.has("shared", "mixed")
	})
}
