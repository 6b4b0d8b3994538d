package agent_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/testing/hosttest"
)

// write writes a file as another program does, with an event.
func (n *node) write(name, content string) {
	n.t.Helper()
	if err := os.WriteFile(n.path(name), []byte(content), 0o644); err != nil {
		n.t.Fatal(err)
	}
	n.machine.happens(n.path(name), true)
	n.settle()
}

// looks counts how often a resource was looked at and found in its state.
func (n *node) looks() int { return strings.Count(n.log.String(), ` stable" manifest=`) }

// with returns a manifest with settings, and files and properties in turn.
func (n *node) with(settings string, files ...string) string {
	user, group := hosttest.Owner(n.t)
	text := "muster: {" + settings + "resources: ["
	for i := 0; i < len(files); i += 2 {
		text += fmt.Sprintf("{file: [{%s: {%s, owner: %q, group: %q, mode: \"0644\"}}]},", n.path(files[i]), files[i+1], user, group)
	}

	return text + "]}"
}

// drifting starts a node with a manifest of files a and b.
func drifting(t *testing.T, f func(t *testing.T, n *node)) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.put("group.all.files", "a", "one", "b", "two")
		n.has("a", "one")
		n.take()
		f(t, n)
	})
}

func TestDriftIsRepairedAtOnce(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		began := time.Now()
		if err := os.WriteFile(n.path("a"), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), true)
		n.settle()
		n.has("a", "one")
		reports := n.take()
		if len(reports) != 2 {
			t.Fatalf("%d reports, want those of the resource and of the run", len(reports))
		}
		var made model.Transaction
		n.decode(reports[0], &made)
		if d := made.Drift; made.Cause != model.CauseDrift || !made.Changed || d == nil || !strings.HasPrefix(d.From, "content") || d.SeenAt.Before(began) || d.RepairedAt.Before(d.SeenAt) {
			t.Errorf("the transaction is %+v, its drift %+v", made, d)
		}
		var run model.Run
		n.decode(reports[1], &run)
		if run.Cause != model.CauseDrift || run.Counts.Total != 1 || run.Counts.Unique != 1 || run.Drift.Repaired != 1 {
			t.Errorf("the run is %+v", run)
		}
		state := n.agent.State()
		if m := state.Manifests["group.all.files"]; m.Counts.Total != 2 || m.Outcome != model.OutcomeChanged || state.Watches != 2 {
			t.Errorf("the state is %+v, want the counts of the manifest, and two watches", state)
		}
	})
}

// TestRemovedFileIsBackAtOnce, and a changed mode is restored.
func TestRemovedFileIsBackAtOnce(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		if err := errors.Join(os.Remove(n.path("a")), os.Chmod(n.path("b"), 0o666)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.machine.happens(n.path("b"), false)
		n.settle()
		n.has("a", "one")
		if info, err := os.Stat(n.path("b")); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("b is %v, %v", info, err)
		}
		if run := n.lastRun(); run.Counts.Total == 0 || run.Cause != model.CauseDrift {
			t.Errorf("the run is %+v", run)
		}
	})
}

// TestOwnChangesAreNoDrift: what the run itself has done wakes the node, which finds
// that it was the run.
func TestOwnChangesAreNoDrift(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		before := n.looks()
		for range 3 {
			n.machine.happens(n.path("a"), false)
			n.settle()
		}
		n.tells()
		if n.looks() != before {
			t.Errorf("it looked:\n%s", n.log.String())
		}
	})
}

// TestLookThatFindsNothingIsNoRun: it is not reported.
func TestLookThatFindsNothingIsNoRun(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		before := n.agent.State().Manifests["group.all.files"]
		n.write("a", "one")
		n.tells()
		if after := n.agent.State().Manifests["group.all.files"]; after != before {
			t.Errorf("the state became %+v, from %+v", after, before)
		}
	})
}

// TestACommandThatAlwaysRunsIsNoDrift: it has no state to drift from.
func TestACommandThatAlwaysRunsIsNoDrift(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.m", `muster: {resources: [{exec: [{"true": {}}]}]}`)
		n.settle()
		n.take()
		n.after(2 * n.config.Interval.Std())
		if run := n.lastRun(); run.Cause != model.CauseSchedule || run.Counts.Changed != 1 || run.Drift.Detected != 0 {
			t.Errorf("the run is %+v", run)
		}
		if strings.Contains(n.log.String(), "latency") {
			t.Errorf("logged\n%s", n.log.String())
		}
	})
}

func TestDriftThatIsOnlyReportedOrIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		m := n.watching()
		n.start()
		n.bucket.put("group.all.files", n.with("", "a", "content: one, drift: report", "b", "content: two, drift: ignore"))
		n.settle()
		n.has("b", "two")
		n.take()
		n.write("a", "other")
		n.has("a", "other")
		n.tells("transaction noop file#a", "run noop group.all.files drift")
		n.write("a", "another")
		n.tells("transaction noop file#a", "run noop group.all.files drift")
		n.machine.happens(n.path("a"), true) // and it is the same as before
		n.tells()
		if count := m.watched(); count != 1 {
			t.Errorf("%d watches, want that of what is reported", count)
		}
	})
}

// TestDriftThatIsOnlyReportedOrIgnoredBesideAFailure: that another resource of the manifest
// fails, and is tried again as the new version asks, changes nothing about that.
func TestDriftThatIsOnlyReportedOrIgnoredBesideAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		if err := os.MkdirAll(n.path("c/x"), 0o755); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.files", n.with("", "a", "content: one, drift: report", "b", "content: two, drift: ignore", "c", "content: three"))
		n.settle()
		n.has("a", "one")
		n.has("b", "two")
		n.write("a", "other")
		n.write("b", "other")
		n.after(20 * time.Minute)
		n.has("a", "other")
		n.has("b", "other")
		if m := n.agent.State().Manifests["group.all.files"]; m.Outcome != model.OutcomeFailed || m.Counts.Noop != 1 || m.Counts.Skipped != 1 {
			t.Errorf("the state is %+v", m)
		}
		n.bucket.put("group.all.files", n.with("", "a", "content: next, drift: report", "b", "content: next, drift: ignore"))
		n.settle()
		n.has("a", "next")
		n.has("b", "next")
	})
}

// TestDriftThatIsOnlyReportedIsInTheState: it is in the state of the node until a look finds it well again.
func TestDriftThatIsOnlyReportedIsInTheState(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.files", n.with("", "a", "content: one, drift: report", "b", "content: two, drift: report", "c", "content: three"))
		n.settle()
		is := func(outcome model.Outcome, noop int) {
			t.Helper()
			m := n.agent.State().Manifests["group.all.files"]
			if c := m.Counts; m.Outcome != outcome || c.Noop != noop || c.Total != 3 || c.Stable < 0 || c.Stable+c.Changed != 3 {
				t.Errorf("the state is %+v, want %s with %d that would change", m, outcome, noop)
			}
		}
		is(model.OutcomeChanged, 0)
		n.write("a", "other")
		is(model.OutcomeNoop, 1)
		n.write("b", "other")
		is(model.OutcomeNoop, 2)
		n.write("c", "other") // which is repaired
		n.has("c", "three")
		is(model.OutcomeNoop, 2)
		n.write("a", "one")
		is(model.OutcomeNoop, 1)
		n.write("b", "two")
		is(model.OutcomeStable, 0)
	})
}

// TestNewVersionKeepsWatches of equal resources.
func TestNewVersionKeepsWatches(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		before := n.machine.ever
		n.put("group.all.files", "a", "one", "b", "changed", "c", "three")
		if armed := n.machine.ever - before; armed != 1 || n.machine.watched() != 3 {
			t.Errorf("%d watches were armed, %d are, want the one of c, and 3", armed, n.machine.watched())
		}
		n.put("group.all.files", "c", "three")
		if n.machine.ever != before+1 || n.machine.watched() != 1 {
			t.Errorf("%d watches were armed, %d are left, want that of c", n.machine.ever-before-1, n.machine.watched())
		}
		n.bucket.remove("group.all.files")
		n.settle()
		if n.machine.watched() != 0 || n.agent.State().Watches != 0 {
			t.Errorf("%d watches are left without a manifest", n.machine.watched())
		}
	})
}

// TestWhatCannotBeWatchedIsPolled, and watched again once it can be.
func TestWhatCannotBeWatchedIsPolled(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		n.machine.fails(n.path("a"), watch.ErrLimit)
		n.settle()
		if s := n.agent.State(); s.Watches != 1 || s.Polled != 1 || !strings.Contains(s.Message, "1 resource is polled, because it cannot be watched: limit of watches reached") {
			t.Errorf("the state is %d watches, %q", s.Watches, s.Message)
		}
		if wrong := n.agent.Describe().Notices; len(wrong) != 1 {
			t.Errorf("the notices are %q, want that it is polled", wrong)
		}
		if err := os.WriteFile(n.path("a"), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
		n.after(61 * time.Second)
		n.has("a", "one")
		n.tells("transaction changed file#a", "run changed group.all.files drift")
		n.machine.mu.Lock()
		clear(n.machine.refused)
		n.machine.mu.Unlock()
		n.after(61 * time.Second)
		if s := n.agent.State(); s.Watches != 2 || s.Message != "" {
			t.Errorf("the state is %d watches, %q", s.Watches, s.Message)
		}
	})
}

// TestRepairThatFails is the state of the manifest until it is repaired.
func TestRepairThatFails(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		if err := errors.Join(os.Remove(n.path("a")), os.Mkdir(n.path("a"), 0o755), os.WriteFile(n.path("a/x"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.settle()
		n.tells("transaction failed file#a", "run failed group.all.files drift")
		if m := n.agent.State().Manifests["group.all.files"]; m.Outcome != model.OutcomeFailed || m.Error == "" {
			t.Errorf("the state is %+v", m)
		}
		if err := os.RemoveAll(n.path("a")); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.settle()
		n.has("a", "one")
		n.tells("transaction changed file#a", "run changed group.all.files drift", "run stable group.all.files schedule")
		if m := n.agent.State().Manifests["group.all.files"]; m.Outcome != model.OutcomeStable || m.Error != "" || m.Counts.Total != 2 {
			t.Errorf("the state is %+v", m)
		}
	})
}

// TestDriftIsSeenWhenItWasFirst, also where its repair failed at first: the tries between count
// as much as the time before them.
func TestDriftIsSeenWhenItWasFirst(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		seen := time.Now()
		if err := errors.Join(os.Remove(n.path("a")), os.Mkdir(n.path("a"), 0o755), os.WriteFile(n.path("a/x"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.settle()
		var failed model.Transaction
		n.decode(n.take()[0], &failed)
		if d := failed.Drift; !failed.Failed || d == nil || !d.SeenAt.Equal(seen) || !d.RepairedAt.IsZero() || d.Latency != 0 {
			t.Errorf("the transaction that failed is %+v, its drift %+v; seen at %s", failed, d, seen)
		}
		n.after(40 * time.Second)
		n.take()
		if err := os.RemoveAll(n.path("a")); err != nil {
			t.Fatal(err)
		}
		n.after(time.Minute)
		n.has("a", "one")
		reports := n.take()
		var made model.Transaction
		n.decode(reports[0], &made)
		if d := made.Drift; !made.Changed || d == nil || !d.SeenAt.Equal(seen) || d.Latency < 40*time.Second {
			t.Errorf("the transaction is %+v, its drift %+v; seen at %s", made, d, seen)
		}
		var run model.Run
		n.decode(reports[1], &run)
		if run.Drift.Repaired != 1 || run.Drift.Latency < 40*time.Second {
			t.Errorf("the run is %+v", run)
		}
		seen = time.Now()
		n.write("a", "other")
		n.decode(n.take()[0], &made)
		if d := made.Drift; d == nil || !d.SeenAt.Equal(seen) {
			t.Errorf("the next drift is %+v; seen at %s", d, seen)
		}
	})
}

// TestReasonIsWhatStillFails after what failed last was repaired.
func TestReasonIsWhatStillFails(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		for _, name := range []string{"a", "b"} {
			if err := errors.Join(os.Remove(n.path(name)), os.Mkdir(n.path(name), 0o755), os.WriteFile(n.path(name+"/x"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			n.machine.happens(n.path(name), false)
			n.settle()
		}
		if err := os.RemoveAll(n.path("b")); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("b"), false)
		n.settle()
		n.has("b", "two")
		if m := n.agent.State().Manifests["group.all.files"]; m.Outcome != model.OutcomeFailed || !strings.Contains(m.Error, n.path("a")+":") {
			t.Errorf("the state is %+v, want that a fails", m)
		}
	})
}

// TestRepairThatFailsIsTriedAgain without a further event: another program may have written before the
// verification.
func TestRepairThatFailsIsTriedAgain(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		if err := errors.Join(os.Remove(n.path("a")), os.Mkdir(n.path("a"), 0o755), os.WriteFile(n.path("a/x"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.after(2 * time.Second)
		n.tells("transaction failed file#a", "run failed group.all.files drift", "run failed group.all.files drift")
		if err := os.RemoveAll(n.path("a")); err != nil {
			t.Fatal(err)
		}
		n.after(3 * time.Second)
		n.has("a", "one")
		n.tells("transaction changed file#a", "run changed group.all.files drift", "run stable group.all.files schedule")
		n.after(4 * time.Minute)
		n.tells()
	})
}

// whyRan returns the outcome and the cause of each run that was reported, and whether it was a retry.
func (n *node) whyRan() (all []string) {
	n.t.Helper()
	for _, r := range n.take() {
		if r.Kind == model.KindRun {
			var run model.Run
			n.decode(r, &run)
			all = append(all, fmt.Sprint(run.Outcome(), " ", run.Cause, " ", run.Retry))
		}
	}

	return all
}

// TestRetriesSaySo: a retry is neither drift nor a later revision.
func TestRetriesSaySo(t *testing.T) {
	expect := func(n *node, what string, want ...string) {
		n.t.Helper()
		if got := n.whyRan(); !slices.Equal(got, want) {
			n.t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	drifting(t, func(t *testing.T, n *node) {
		if err := errors.Join(os.Remove(n.path("a")), os.Mkdir(n.path("a"), 0o755), os.WriteFile(n.path("a/x"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.after(2 * time.Second)
		expect(n, "drift that cannot be repaired", "failed drift false", "failed drift true")
	})
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.broken", n.failing(1))
		n.settle()
		expect(n, "a first run", "failed manifest false")
		n.after(2 * time.Second)
		expect(n, "one that is tried again, of which nothing drifted", "failed drift true")
		n.bucket.put("group.all.broken", n.failing(2))
		n.settle()
		expect(n, "a later revision", "failed manifest false")
	})
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.broken", n.failing(1))
		n.settle()
		expect(n, "a first run", "failed manifest false")
		n.after(interval)
		expect(n, "on the interval", "failed manifest true")
	})
}

// TestRefreshThatIsRefusedAtTheEnd of a run, such as a restart of the agent's own unit, is made by
// the repairs of what failed, later and later.
func TestRefreshThatIsRefusedAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.m", n.manifest("a", "one")+"    - slow:\n        - /late: {ensure: present, subscribe: [\"file#"+n.path("a")+"\"]}\n")
		n.settle()
		n.take()
		s.refused = 2
		n.write("a", "drifted")
		n.tells("transaction changed file#a", "transaction failed slow#/late", "run failed group.all.m drift")
		if m := n.agent.State().Manifests["group.all.m"]; m.Outcome != model.OutcomeFailed || !strings.Contains(m.Error, "it is refused") {
			t.Errorf("the state is %+v", m)
		}
		n.after(8 * time.Second)
		n.tells("run failed group.all.m drift") // an unchanged failure is reported once
		n.after(15 * time.Second)
		n.tells()
		n.after(time.Second)
		n.tells("transaction refreshed slow#/late", "run changed group.all.m drift", "run stable group.all.m schedule")
	})
}

// TestFlapping: another program writes a file after each repair.
func TestFlapping(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		n.machine.writers[n.path("a")] = "puppet (pid 12, puppet.service, user 0)"
		began := time.Now()
		for range 6 {
			n.write("a", "other")
			n.has("a", "one")
		}
		n.write("a", "other")
		n.has("a", "other") // held back
		var told []string
		for _, word := range n.told() {
			if !strings.HasPrefix(word, "transaction") && !strings.HasPrefix(word, "run") {
				told = append(told, word)
			}
		}
		if strings.Join(told, ", ") != "node flapping" {
			t.Errorf("told %v, want that it flaps, once", told)
		}
		s := n.agent.State()
		if len(s.Flapping) != 1 || s.Flapping[0].Writer != "puppet (pid 12, puppet.service, user 0)" || s.Flapping[0].Resource.Name != n.path("a") || s.Flapping[0].Since.Before(began) {
			t.Fatalf("the state has %+v", s.Flapping)
		}
		n.write("b", "other")
		n.has("b", "two") // others are repaired
		n.take()
		n.after(12 * time.Second)
		n.has("a", "one")
		n.tells("transaction changed file#a", "run changed group.all.files drift")
		n.write("a", "other")
		n.after(23 * time.Second)
		n.has("a", "other")
		n.after(2 * time.Second)
		n.has("a", "one")
		n.take()
		// It is left alone: after the last hold and a minute.
		n.after(48*time.Second + 61*time.Second)
		n.tells("node flapping") // that it is over
		if s := n.agent.State(); len(s.Flapping) != 0 {
			t.Errorf("the state has %+v", s.Flapping)
		}
		n.write("a", "other")
		n.has("a", "one")
		if len(n.machine.listening) != 0 {
			t.Errorf("somebody still listens at %v", n.machine.listening)
		}
	})
}

// TestFlappingByNobodyKnown is reported with the delayed repair.
func TestFlappingByNobodyKnown(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		for range 7 {
			n.write("a", "other")
		}
		n.take()
		n.after(13 * time.Second)
		if s := n.agent.State(); len(s.Flapping) != 1 || s.Flapping[0].Writer != "" {
			t.Fatalf("the state has %+v", s.Flapping)
		}
		found := false
		for _, r := range n.take() {
			var s model.NodeState
			if r.Kind == model.KindNode {
				n.decode(r, &s)
				found = found || s.Event == model.NodeFlapping && strings.Contains(s.Message, "an unknown program")
			}
		}
		if !found {
			t.Error("nobody was told")
		}
	})
}

// TestFlappingOff of a manifest repairs each time.
func TestFlappingOff(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.files", n.with("flapping: off, ", "a", "content: one"))
		n.settle()
		n.take()
		for range 50 {
			n.write("a", "other")
			n.has("a", "one")
		}
		if len(n.agent.State().Flapping) != 0 {
			t.Error("it flaps")
		}
	})
}

// TestFlappingIsForgottenWithItsManifest, without a word.
func TestFlappingIsForgottenWithItsManifest(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		for range 7 {
			n.write("a", "other")
		}
		n.bucket.remove("group.all.files")
		n.settle()
		n.take()
		n.after(time.Hour)
		n.tells()
		if len(n.agent.State().Flapping) != 0 || len(n.machine.listening) != 0 {
			t.Errorf("left: %+v, %v", n.agent.State().Flapping, n.machine.listening)
		}
	})
}

// TestLooksAtWhatIsWrittenAllTheTime are fewer and fewer.
func TestLooksAtWhatIsWrittenAllTheTime(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.log", n.with("", "a", "ensure: present"))
		n.settle()
		n.take()
		before := n.looks()
		for range 1000 {
			n.write("a", "a line")
			n.after(10 * time.Millisecond)
		}
		n.tells()
		if looks := n.looks() - before; looks < 2 || looks > 40 {
			t.Errorf("%d looks in ten seconds", looks)
		}
	})
}

// TestLateChildThatSomebodyRepairs is of a manifest that runs as a whole for each event:
// it no longer fails once a look finds nothing to do.
func TestLateChildThatSomebodyRepairs(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.motd", n.parent("child.yaml", n.child("motd", "hello", "")))
		n.settle()
		n.has("motd", "hello")
		if err := errors.Join(os.Remove(n.path("motd")), os.Mkdir(n.path("motd"), 0o755), os.WriteFile(n.path("motd/x"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("motd"), false)
		n.settle()
		if m := n.agent.State().Manifests["group.all.motd"]; m.Outcome != model.OutcomeFailed {
			t.Fatalf("the state is %+v", m)
		}
		n.take()
		if err := os.RemoveAll(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.write("motd", "hello")
		if m := n.agent.State().Manifests["group.all.motd"]; m.Outcome != model.OutcomeStable || m.Error != "" {
			t.Errorf("the state is %+v", m)
		}
		n.tells("run stable group.all.motd drift")
		n.write("motd", "hello")
		n.tells()
	})
}

// TestDriftIsRepairedAfterARunThatCouldNotBegin, and not on the interval.
func TestDriftIsRepairedAfterARunThatCouldNotBegin(t *testing.T) {
	drifting(t, func(t *testing.T, n *node) {
		lock := filepath.Join(n.state, "run.lock")
		if err := errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
			t.Fatal(err)
		}
		n.write("a", "drifted")
		n.has("a", "drifted")
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
		n.after(10 * time.Second)
		n.has("a", "one")
	})
}

// TestHealthOfWhatHasNotDrifted is reported although the look is not.
func TestHealthOfWhatHasNotDrifted(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		c := &clinic{statuses: map[string]model.HealthStatus{}}
		n.checker, n.config.HealthInterval = c, 0
		n.start()
		n.bucket.put("group.all.files", n.with("", "a", "content: one, health_checks: [{name: http, command: a}]"))
		n.settle()
		n.take()
		c.set("http", model.HealthWarning)
		n.write("a", "one")
		n.tells("health warning")
	})
}
