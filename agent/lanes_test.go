package agent_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/hosttest"
)

// waitingFor returns what the runs that wait, by manifest, wait for.
func (n *node) waitingFor() map[string]string {
	out := map[string]string{}
	for _, r := range n.agent.Describe().Running {
		out[r.Manifest] = r.WaitsFor
	}

	return out
}

// besideLong starts a node that watches, with files and a long run of another manifest.
func besideLong(t *testing.T, f func(n *node, s *slow)) {
	t.Helper()
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.put("group.all.files", "a", "one", "b", "two")
		n.bucket.put("group.all.long", s.manifest("a", "wait"))
		<-s.begun
		n.take()
		f(n, s)
		n.settle()
	})
}

func TestDriftIsRepairedBesideALongRun(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		n.write("a", "drifted")
		n.has("a", "one")
		n.tells("transaction changed file#a", "run changed group.all.files drift")
		close(s.release)
		n.tells("transaction changed slow#wait", "run changed group.all.long manifest")
	})
}

// TestManifestsBesideALongRun: short runs are waited for, a long one is not.
func TestManifestsBesideALongRun(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		n.put("group.all.other", "other", "x")
		n.lacks("other")
		n.after(runner.Patience)
		n.has("other", "x")
		n.tells("transaction changed file#other", "run changed group.all.other manifest")
		close(s.release)
	})
}

func TestRequestBesideALongRun(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		n.after(runner.Patience)
		if a := n.ask(n.request("r1", "motd", "asked", "")); a.phases() != "acknowledged running done" {
			n.t.Errorf("answered %s", a.phases())
		}
		n.has("motd", "asked")
		blocked := n.ask([]byte(strings.Replace(waiting, "r1", "r2", 1))) // services, as the long one
		n.after(time.Hour)
		if blocked.phases() != "acknowledged" || n.waitingFor()["ensure"] != "group.all.long" {
			n.t.Errorf("answered %s, and it waits for %q", blocked.phases(), n.waitingFor())
		}
		close(s.release)
		n.settle()
		if blocked.phases() != "acknowledged running done" {
			n.t.Errorf("answered %s", blocked.phases())
		}
	})
}

// TestRequestThatExpiresWhileItWaits for a run that has begun before is not executed.
func TestRequestThatExpiresWhileItWaits(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		n.after(runner.Patience)
		expires := time.Now().Add(30 * time.Minute).UTC().Format(time.RFC3339)
		late := n.ask([]byte(strings.Replace(waiting, `"type"`, `"expires": "`+expires+`", "type"`, 1)))
		n.after(time.Hour)
		close(s.release)
		n.settle()
		if late.phases() != "acknowledged expired" {
			n.t.Errorf("answered %s", late.phases())
		}
	})
}

// TestWhatIsSharedIsWaitedFor: a run that needs the same domain waits, and no later run that would delay it
// overtakes it.
func TestWhatIsSharedIsWaitedFor(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		mixed := strings.Replace(n.manifest("shared", "mixed"), "resources:\n", "resources:\n    - slow:\n        - second: {ensure: present}\n", 1)
		n.bucket.put("group.all.mixed", mixed)
		n.after(runner.Patience)
		n.put("group.all.tail", "tail", "x")
		n.after(runner.Patience)
		n.has("tail", "x")
		n.lacks("shared")
		asked := n.ask(n.request("r1", "shared", "asked", ""))
		n.after(time.Hour)
		n.lacks("shared")
		want := map[string]string{"group.all.long": "", "group.all.mixed": "group.all.long", "ensure": "group.all.mixed"}
		for key, blocker := range n.waitingFor() {
			if want[key] != blocker {
				n.t.Errorf("%s waits for %q, want %q", key, blocker, want[key])
			}
		}
		if asked.phases() != "acknowledged" {
			n.t.Errorf("answered %s", asked.phases())
		}
		n.take()
		close(s.release)
		n.settle()
		n.has("shared", "asked")
	})
}

// together returns a manifest of files and a change that waits, in this order.
func together(n *node, files ...string) string {
	return n.manifest(files...) + "    - slow:\n        - wait: {ensure: present}\n"
}

// TestDriftBesideItsOwnManifest is repaired where the resource had its turn, and nothing to
// come is tied to it.
func TestDriftBesideItsOwnManifest(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.m", together(n, "a", "one", "b", "two")+
			"        - tied: {ensure: present, require: [\"file#"+n.path("b")+"\"]}\n")
		<-s.begun
		n.take()
		n.write("a", "drifted")
		n.has("a", "one")
		// The first two belong to the whole run: reports are published with the next summary.
		n.tells("transaction changed file#a", "transaction changed file#b", "transaction changed file#a", "run changed group.all.m drift")
		n.write("b", "drifted")
		n.after(time.Hour)
		n.has("b", "drifted")
		if !slices.ContainsFunc(n.agent.Describe().Running, func(r model.RunningRun) bool {
			return r.WaitsFor == "group.all.m" && slices.Equal(r.Part, []model.Ref{{Type: "file", Name: n.path("b")}})
		}) {
			t.Errorf("the repair that waits is not named: %+v", n.agent.Describe().Running)
		}
		close(s.release)
		n.settle()
		n.has("b", "two")
		// The repair may begin after the last resource of the whole run, before its summary.
		told := n.told()
		repair := []string{"transaction changed file#b", "run changed group.all.m drift"}
		whole := []string{"transaction changed slow#wait", "transaction changed slow#tied", "run changed group.all.m manifest"}
		isOf := func(run []string) func(string) bool {
			return func(report string) bool { return slices.Contains(run, report) }
		}
		if got := slices.DeleteFunc(slices.Clone(told), isOf(repair)); !slices.Equal(got, whole) {
			t.Errorf("reported %q, beside the repair want %q", told, whole)
		}
		if got := slices.DeleteFunc(slices.Clone(told), isOf(whole)); !slices.Equal(got, repair) {
			t.Errorf("reported %q, beside the whole want %q", told, repair)
		}
		if slices.Index(told, "transaction changed file#b") < slices.Index(told, "transaction changed slow#tied") {
			t.Errorf("reported %q: the repair did not wait for what is tied to it", told)
		}
	})
}

// TestFilesBesideLongRepairs: files of the same manifest are repaired, whatever the number of long repairs.
func TestFilesBesideLongRepairs(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		manifest := n.manifest("a", "one") + "    - slow:\n"
		for i := range runner.Most + 1 {
			manifest += fmt.Sprintf("        - /wait%d: {ensure: present}\n", i)
		}
		go func() {
			for range runner.Most + 1 {
				s.release <- struct{}{}
			}
		}()
		n.bucket.put("group.all.m", manifest)
		n.settle()
		n.has("a", "one")
		n.take()
		for i := range runner.Most + 1 {
			s.forget(fmt.Sprintf("/wait%d", i))
			n.machine.happens(fmt.Sprintf("/wait%d", i), false)
			n.settle()
		}
		n.write("a", "drifted")
		n.has("a", "one")
		n.tells("transaction changed file#a", "run changed group.all.m drift")
		close(s.release)
		n.settle()
		repaired := 0
		for _, told := range n.told() {
			if strings.HasPrefix(told, "transaction changed slow#/wait") {
				repaired++
			}
		}
		if repaired != runner.Most+1 {
			t.Errorf("%d long repairs were made", repaired)
		}
	})
}

// TestFailureThatEndsBesideItsOwnRun: a resource repaired during the whole run does not count as failed at
// its end.
func TestFailureThatEndsBesideItsOwnRun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.m", together(n, "sub/a", "one"))
		<-s.begun
		if err := os.Mkdir(n.path("sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		n.after(time.Minute) // what failed is tried again
		n.has("sub/a", "one")
		close(s.release)
		n.settle()
		n.isIn("group.all.m", model.OutcomeStable)
	})
}

// TestFailureThatBeginsBesideItsOwnRun is not taken back by the end of the whole.
func TestFailureThatBeginsBesideItsOwnRun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.m", together(n, "a", "one"))
		<-s.begun
		if err := errors.Join(os.Remove(n.path("a")), os.Mkdir(n.path("a"), 0o755)); err != nil {
			t.Fatal(err)
		}
		n.machine.happens(n.path("a"), false)
		n.settle()
		close(s.release)
		n.settle()
		n.isIn("group.all.m", model.OutcomeFailed)
	})
}

// TestDriftThatIsReportedBesideItsOwnRun is not forgotten at the end of the whole.
func TestDriftThatIsReportedBesideItsOwnRun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.m", strings.Replace(n.with("", "a", "content: one, drift: report"), ",]}", ", {slow: [{wait: {ensure: present}}]}]}", 1))
		<-s.begun
		n.write("a", "drifted")
		close(s.release)
		n.settle()
		n.isIn("group.all.m", model.OutcomeNoop)
	})
}

// TestDriftBesideTheRunThatEndsAFailure: a run that brings the numbers of a manifest up to
// date is in progress, and no other one, which repairs would be part of, is asked for.
func TestDriftBesideTheRunThatEndsAFailure(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.config.Interval = model.Duration(time.Minute)
		n.start()
		n.bucket.put("group.all.m", n.manifest("a", "one")+"    - exec:\n        - test -e "+n.path("there")+": {}\n    - slow:\n        - wait: {ensure: present}\n")
		<-s.begun
		s.release <- struct{}{}
		n.settle()
		n.isIn("group.all.m", model.OutcomeFailed)
		if err := os.WriteFile(n.path("there"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.forget("wait")
		<-s.begun
		for range 3 {
			n.write("a", "drifted")
			n.has("a", "one")
		}
		close(s.release)
		n.settle()
		n.isIn("group.all.m", model.OutcomeChanged)
	})
}

// isIn expects the state and the status of a manifest to have an outcome.
func (n *node) isIn(key string, want model.Outcome) {
	n.t.Helper()
	if state := n.agent.State().Manifests[key]; state.Outcome != want {
		n.t.Errorf("the state is %+v, want it %s", state, want)
	}
	for _, m := range n.agent.Describe().Manifests {
		if m.Key == key && m.Last.Outcome != want {
			n.t.Errorf("the last run is %+v, want it %s", m.Last, want)
		}
	}
}

// TestANewVersionWaitsForTheRunOfTheLast, which is reported under its version.
func TestANewVersionWaitsForTheRunOfTheLast(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		first := n.bucket.put("group.all.m", together(n, "a", "one"))
		<-s.begun
		second := n.put("group.all.m", "a", "two")
		n.after(time.Hour)
		n.has("a", "one")
		n.take()
		close(s.release)
		n.settle()
		n.has("a", "two")
		var revisions []uint64
		for _, r := range n.take() {
			if r.Kind == model.KindRun {
				revisions = append(revisions, r.Revision)
			}
		}
		if len(revisions) != 2 || revisions[0] != first || revisions[1] != second {
			t.Errorf("runs of %v are reported, want of %d and %d", revisions, first, second)
		}
		if state := n.agent.State().Manifests["group.all.m"]; state.Revision != second || state.Outcome != model.OutcomeChanged {
			t.Errorf("the state is %+v", state)
		}
		n.stop()
		n.start()
		if run := n.take(); len(run) == 0 || strings.Contains(n.log.String(), "level=ERROR") {
			t.Errorf("after a restart %v", run)
		}
	})
}

// TestUnassignedWhileItRuns: it comes to its end, and leaves nothing behind.
func TestUnassignedWhileItRuns(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.m", together(n, "a", "one"))
		<-s.begun
		n.take()
		n.bucket.remove("group.all.m")
		n.after(time.Hour)
		close(s.release)
		n.tells("transaction changed file#a", "node unassigned", "transaction changed slow#wait", "run changed group.all.m manifest")
		status := n.agent.Describe()
		if len(status.Manifests) != 0 || len(status.Running) != 0 || n.machine.watched() != 0 {
			t.Errorf("the status is %+v, %d are watched", status, n.machine.watched())
		}
		if files, err := os.ReadDir(n.state + "/owed"); err == nil && len(files) > 0 {
			t.Errorf("%v is left", files)
		}
	})
}

// TestStopDuringSeveralRuns finishes the changes in hand, and does not begin what waits.
func TestStopDuringSeveralRuns(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		n.bucket.put("group.all.waits", s.manifest("b", "never"))
		n.after(runner.Patience)
		go func() {
			<-time.After(30 * time.Second)
			close(s.release)
		}()
		n.stop()
		n.tells("transaction changed slow#wait", "run changed group.all.long manifest")
		if s.done["never"] {
			n.t.Error("what waited has begun")
		}
		n.start()
		if !s.done["never"] {
			n.t.Error("the next start did not do what waited")
		}
	})
}

// TestOtherProcessesWaitForAllRuns, and no run begins while one waits.
func TestOtherProcessesWaitForAllRuns(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		waits, got := make(chan struct{}), make(chan func() error)
		go func() {
			unlock, err := state.NewLocks(n.state).Lock(n.t.Context(), state.LockOptions{Wait: true, OnWait: func(state.LockHolder) { close(waits) }})
			if err != nil {
				n.t.Error(err)
			}
			got <- unlock
		}()
		<-waits
		n.write("a", "drifted")
		n.after(time.Minute)
		n.has("a", "drifted")
		close(s.release)
		unlock := <-got
		n.after(time.Minute)
		n.has("a", "drifted")
		if err := unlock(); err != nil {
			n.t.Error(err)
		}
		n.after(time.Minute)
		n.has("a", "one")
	})
}

// TestCommandLineThatWaitsBetweenTwoRuns: a command line does not block an earlier run that waits for the
// lock.
func TestCommandLineThatWaitsBetweenTwoRuns(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		s := newSlow(n)
		n.held = make(chan struct{})
		n.start()
		n.put("group.all.files", "a", "one")
		n.bucket.put("group.all.long", s.manifest("b", "wait"))
		<-s.begun
		n.after(runner.Patience)
		asked := n.ask(n.request("r1", "motd", "asked", ""))
		n.write("a", "drifted") // its repair waits for the request, whose domain is unknown
		waits, got := make(chan struct{}), make(chan func() error, 1)
		go func() {
			unlock, err := state.NewLocks(n.state).Lock(n.t.Context(), state.LockOptions{Wait: true, OnWait: func(state.LockHolder) { close(waits) }})
			if err != nil {
				n.t.Error(err)
			}
			got <- unlock
		}()
		<-waits
		close(n.held)
		n.settle()
		close(s.release)
		n.after(time.Minute)
		n.has("a", "one")
		if asked.phases() != "acknowledged running done" {
			t.Errorf("answered %s", asked.phases())
		}
		select {
		case unlock := <-got:
			if err := unlock(); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("the command line waits, and so do %q", n.waitingFor())
		}
	})
}

// TestPendingRefreshesOfSeveralRuns: what one of them leaves pending is its own manifest's.
func TestPendingRefreshesOfSeveralRuns(t *testing.T) {
	besideLong(t, func(n *node, s *slow) {
		user, group := hosttest.Owner(n.t)
		n.bucket.put("group.all.pending", "muster: {resources: [{file: [{"+n.path("conf")+": {content: x, owner: '"+user+"', group: '"+group+"', mode: '0644'}}]},"+
			"{exec: [{reload: {command: test -e "+n.path("there")+", refresh_only: true, subscribe: ['file#"+n.path("conf")+"']}}]}]}")
		n.after(runner.Patience)
		n.has("conf", "x")
		n.tells("transaction changed file#conf", "transaction failed exec#reload", "run failed group.all.pending manifest")
		close(s.release)
		n.settle()
		n.take()
		if err := os.WriteFile(n.path("there"), nil, 0o644); err != nil {
			n.t.Fatal(err)
		}
		n.after(time.Hour)
		if !strings.Contains(strings.Join(n.told(), "\n"), "transaction refreshed exec#reload") {
			n.t.Error("the pending refresh was lost")
		}
	})
}
