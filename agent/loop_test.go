package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

func TestManifestIsAppliedAndReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		revision := n.put("node.web01_example_net.motd", "motd", "hello\n")
		n.has("motd", "hello\n")
		reports := n.take()
		var kinds []string
		for i, r := range reports {
			kinds = append(kinds, r.Kind+" "+string(r.Outcome))
			if r.Seq != uint64(i+1) || r.ID == "" || r.Time.IsZero() || r.Type == "" {
				t.Errorf("report %d is %+v", i, r)
			}
		}
		if got := strings.Join(kinds, ", "); got != "node started, transaction changed, run changed" {
			t.Errorf("reported %s", got)
		}
		var made model.Transaction
		n.decode(reports[1], &made)
		if _, err := ksuid.Parse(made.EventID); err != nil {
			t.Errorf("the id of the transaction is %q: %v", made.EventID, err)
		}
		var run model.Run
		n.decode(reports[2], &run)
		if run.Revision != revision || run.Manifest != "node.web01_example_net.motd" || run.Node != "web01_example_net" || run.Cause != model.CauseManifest ||
			run.Counts.Changed != 1 || run.Version != "1.2.3" || !strings.HasPrefix(run.Digest, "sha256-") || reports[2].Revision != revision {
			t.Errorf("the run is %+v", run)
		}
		state := n.agent.State().Manifests["node.web01_example_net.motd"]
		if state.Revision != revision || state.Outcome != model.OutcomeChanged || state.Counts.Changed != 1 || state.Digest != run.Digest || state.Late != "" {
			t.Errorf("the state is %+v", state)
		}

		n.put("node.web01_example_net.motd", "motd", "hello again\n")
		n.has("motd", "hello again\n")
		n.tells("transaction changed file#motd", "run changed node.web01_example_net.motd manifest")
	})
}

func TestDriftIsRepairedOnTheInterval(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(6 * time.Minute)
		n.has("motd", "hello\n")
		run := n.lastRun()
		if run.Cause != model.CauseSchedule || run.Drift.Detected != 1 || run.Drift.Repaired != 1 {
			t.Errorf("the run is %+v", run)
		}
		n.after(6 * time.Minute)
		n.tells("run stable group.all.motd schedule")
	})
}

func TestWakesAreBroughtTogether(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.injected() // all puts precede the node's read
		n.start()
		for i := range 20 {
			n.bucket.put("group.all.motd", n.manifest("motd", strings.Repeat("x", i)))
		}
		n.settle()
		n.has("motd", strings.Repeat("x", 19))
		runs := 0
		for _, word := range n.told() {
			if strings.HasPrefix(word, "run") {
				runs++
			}
		}
		if runs > 3 {
			t.Errorf("%d runs for 20 puts in a row", runs)
		}
	})
}

func TestUnassignedManifestIsNotRunAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		n.bucket.remove("group.all.motd")
		reports := n.take()
		if len(reports) != 1 || reports[0].Kind != model.KindNode || reports[0].Outcome != "unassigned" || reports[0].Manifest != "group.all.motd" {
			t.Fatalf("reported %+v", reports)
		}
		var told model.NodeState
		n.decode(reports[0], &told)
		if _, still := told.Manifests["group.all.motd"]; still || told.Event != model.NodeUnassigned || !strings.HasPrefix(told.Message, "group.all.motd is not assigned any more") {
			t.Errorf("the node reports %+v", told)
		}
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(time.Hour)
		n.lacks("motd")
		n.tells()
		if len(n.agent.State().Manifests) != 0 {
			t.Errorf("the state still has it: %+v", n.agent.State().Manifests)
		}
		n.stop()
		bucket.sync = model.Sync{}
		n.start()
		n.after(time.Minute)
		n.lacks("motd")
	})
}

func TestBucketThatCannotBeTrusted(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		bucket.change(func() {
			clear(bucket.entries)
			bucket.sync = model.Sync{Kept: []string{"group.all.motd"}}
		})
		n.settle()
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(6 * time.Minute)
		n.has("motd", "hello\n")
		n.tells("node refused", "transaction changed file#motd", "run changed group.all.motd schedule")
	})
}

func TestNodeBeatsGroupBeatsAll(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		for _, step := range []struct{ key, want string }{
			{"group.all.motd", "all"}, {"group.prod.motd", "prod"}, {"group.web.motd", "web"}, {"node.web01_example_net.motd", "node"},
		} {
			n.put(step.key, "motd", step.want)
			n.has("motd", step.want)
		}
		n.put("node.web02.motd", "motd", "another node")
		n.put("group.db.motd", "motd", "another group")
		n.has("motd", "node")
		for _, step := range []struct{ key, want string }{
			{"node.web01_example_net.motd", "web"}, {"group.web.motd", "prod"}, {"group.prod.motd", "all"},
		} {
			n.bucket.remove(step.key)
			n.settle()
			n.has("motd", step.want)
		}
	})
}

func TestOrderOfRuns(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.bucket.put("group.all.a", n.manifest("1", "x"))
		n.bucket.put("group.prod.b", n.manifest("2", "x"))
		n.bucket.put("group.web.z", n.manifest("3", "x"))
		n.bucket.put("group.web.y", n.assignment("priority: 10", n.manifest("4", "x")))
		n.bucket.put("node.web01_example_net.c", n.manifest("5", "x"))
		n.start()
		var got []string
		for _, r := range n.take() {
			if r.Kind == model.KindRun {
				got = append(got, r.Manifest)
			}
		}
		want := "node.web01_example_net.c group.web.z group.web.y group.prod.b group.all.a"
		if strings.Join(got, " ") != want {
			t.Errorf("ran %v, want %s", got, want)
		}
	})
}

// assignment gives the document around a manifest.
func (n *node) assignment(more, manifest string) string {
	lines := strings.ReplaceAll(strings.TrimSpace(manifest), "\n", "\n  ")

	return "protocol: io.muster.v1.assignment\n" + more + "\nmanifest: |\n  " + lines + "\n"
}

func TestLongRunsDoNotKeepOthersFromTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		slow := newSlow(n)
		slow.takes = 3 * time.Second
		n.bucket.put("group.all.a", n.assignment("interval: 1s", slow.manifest("a", "look")))
		n.bucket.put("group.all.b", n.assignment("interval: 2s", n.manifest("motd", "x")))
		n.start()
		n.after(2 * time.Minute)
		runs := map[string]int{}
		for _, r := range n.take() {
			runs[r.Manifest]++
		}
		if runs["group.all.b"] < 10 {
			t.Errorf("runs are %v", runs)
		}
	})
}

func TestPanicsDoNotEndTheAgent(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.refuse = func(model.Report) bool { panic("publisher") }
		n.outside.setFacts(func() model.Facts { panic("facts") })
		n.start()
		n.after(time.Minute)
		n.outside.setFacts(func() model.Facts { return model.Facts{} })
		n.stream.mu.Lock()
		n.stream.refuse = nil
		n.stream.mu.Unlock()
		n.put("group.all.motd", "motd", "hello\n")
		n.after(10 * time.Minute)
		n.has("motd", "hello\n")
		if len(n.take()) == 0 {
			t.Error("nothing was reported")
		}
	})
}

// TestRunThatCannotBegin: the reason is reported, and the run tried again soon.
func TestRunThatCannotBegin(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		lock := filepath.Join(n.state, "run.lock")
		if err := os.RemoveAll(lock); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(lock, 0o700); err != nil {
			t.Fatal(err)
		}
		n.put("group.all.motd", "motd", "hello\n")
		n.lacks("motd")
		run := n.lastRun()
		state := n.agent.State().Manifests["group.all.motd"]
		if run.Outcome() != model.OutcomeFailed || len(run.Errors) != 1 || state.Outcome != model.OutcomeFailed || state.Error != run.Errors[0] || !strings.Contains(state.Error, "run lock") {
			t.Errorf("the run is %+v, the state %+v", run, state)
		}
		n.after(time.Minute)
		if got := len(n.told()); got < 3 || got > 8 {
			t.Errorf("it was tried %d times in a minute", got)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		n.after(100 * time.Second) // the longest wait by then: 64 seconds and a half of it
		n.has("motd", "hello\n")
		n.tells("transaction changed file#motd", "run changed group.all.motd manifest")
		if state = n.agent.State().Manifests["group.all.motd"]; state.Error != "" || state.Outcome != model.OutcomeChanged {
			t.Errorf("the state is %+v", state)
		}
		n.after(2 * time.Minute) // the next run on the interval: 270 seconds after that at the earliest
		n.tells()
		n.stop()
		for line := range strings.Lines(n.log.String()) {
			if strings.Contains(line, `msg="run failed"`) && !strings.Contains(line, "could not open run lock") {
				t.Errorf("the log does not say why: %s", line)
			}
		}
		if !strings.Contains(n.log.String(), `msg="run failed"`) {
			t.Error("the log does not say that the run failed")
		}
	})
}

// TestManifestIsResolvedOnceFromThePutToTheReport, also one that reads facts and data. A run on the interval
// resolves that one again.
func TestManifestIsResolvedOnceFromThePutToTheReport(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.outside.setKV("hello", nil)
		n.start()
		n.bucket.put("group.all.motd", strings.Replace(n.manifest("motd", "CONTENT"), "CONTENT", "${ kvGet('settings', 'motd') } ${ Facts.role }", 1))
		n.settle()
		n.has("motd", "hello web")
		if n.resolved != 1 {
			t.Errorf("it was resolved %d times", n.resolved)
		}
		n.outside.setKV("bye", nil)
		n.after(6 * time.Minute)
		n.has("motd", "bye web")
		if n.resolved != 2 {
			t.Errorf("after a further run it was resolved %d times", n.resolved)
		}
	})
}

// TestManifestIsResolvedAgainAfterAnotherChangedWhatItReads: both are activated at
// once, and the first one writes the file that the second one includes.
func TestManifestIsResolvedAgainAfterAnotherChangedWhatItReads(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		if err := os.WriteFile(n.path("child.yaml"), []byte(n.child("motd", "one", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.a", strings.Replace(n.manifest("child.yaml", "CHILD"), `"CHILD"`, "'"+n.child("motd", "two", "")+"'", 1))
		n.bucket.put("group.all.b", n.parent("child.yaml", ""))
		n.start()
		n.has("motd", "two")
	})
}
