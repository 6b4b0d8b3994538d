package agent_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

// present counts which of the files there are.
func (n *node) present(names ...string) (count int) {
	for _, name := range names {
		if _, err := os.Stat(n.path(name)); err == nil {
			count++
		}
	}

	return count
}

// TestLimitOfAManifest spreads the changes of a manifest over minutes, without delays for others.
func TestLimitOfAManifest(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		names, files := []string{"a", "b", "c", "d", "e"}, []string{}
		for _, name := range names {
			files = append(files, name, "content: x")
		}
		n.bucket.put("group.all.limited", n.with("limit: 2, ", files...))
		n.settle()
		if got := n.present(names...); got != 2 {
			t.Fatalf("%d files are there, want 2", got)
		}
		until := time.Now().Add(runner.Within).UTC().Format("15:04:05")
		want := "3 of its resources put off by a limit of changes a minute, the next until " + until + " UTC"
		if s := n.agent.State().Manifests["group.all.limited"]; s.Outcome != "" || s.Error != want || s.Counts.NotRun != 3 {
			t.Errorf("it is %q, %q, %+v; want %q", s.Outcome, s.Error, s.Counts, want)
		}
		n.tells("transaction changed file#a", "transaction changed file#b", "transaction notrun file#c", "transaction notrun file#d", "transaction notrun file#e", "run notrun group.all.limited manifest")
		n.put("group.all.other", "other", "y")
		n.has("other", "y")
		n.take()
		n.after(runner.Within - time.Second)
		if got := n.present(names...); got != 2 {
			t.Errorf("%d files are there before the minute is over, want 2", got)
		}
		n.after(2 * time.Second)
		if got := n.present(names...); got != 4 {
			t.Errorf("%d files are there after a minute, want 4", got)
		}
		n.after(runner.Within)
		if got := n.present(names...); got != 5 {
			t.Errorf("%d files are there after two minutes, want 5", got)
		}
		if s := n.agent.State().Manifests["group.all.limited"]; s.Outcome != model.OutcomeChanged || s.Error != "" {
			t.Errorf("it is %q, %q", s.Outcome, s.Error)
		}
		for _, r := range n.take() {
			if r.Kind == model.KindRun {
				var run model.Run
				n.decode(r, &run)
				if run.Cause != model.CauseManifest {
					t.Errorf("reported %s", r.Data)
				}
			}
		}
	})
}

// TestLimitPutsOffWhatComesAfter: it neither runs nor fails.
func TestLimitPutsOffWhatComesAfter(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		user, group := hosttest.Owner(t)
		own := fmt.Sprintf("owner: %q, group: %q", user, group)
		n.bucket.put("group.all.limited", fmt.Sprintf(`muster: {limit: 1, resources: [{file: [%s: {content: x, mode: "0644", %s}, %s: {ensure: directory, mode: "0755", %s}, %s: {content: x, mode: "0644", %s}]}, {file: [%s: {content: x, mode: "0644", %s, require: [file#%s]}]}]}`,
			n.path("a"), own, n.path("dir"), own, n.path("dir/c"), own, n.path("b"), own, n.path("dir")))
		n.settle()
		for minute, want := range []string{"a", "dir", "dir/c", "b"} {
			if n.present(want) != 1 {
				t.Fatalf("%s is not there in minute %d", want, minute)
			}
			for _, r := range n.take() {
				if r.Outcome == model.OutcomeFailed || r.Outcome == model.OutcomeUnmet {
					t.Errorf("reported %s", r.Data)
				}
				if minute == 0 && r.Kind == model.KindRun && !strings.Contains(string(r.Data), `"resumes":"`) {
					t.Errorf("the run does not say when it goes on: %s", r.Data)
				}
			}
			n.after(runner.Within)
		}
	})
}

// TestLimitOfRepairs: a resource with a limit is repaired once a minute, the others at once.
func TestLimitOfRepairs(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.files", n.with("", "a", "content: one, limit: 1", "b", "content: two"))
		n.settle()
		n.after(runner.Within)
		n.take()
		n.write("a", "first")
		n.has("a", "one")
		n.after(10 * time.Second)
		n.take()
		seen := time.Now()
		n.write("a", "again")
		n.has("a", "again")
		for range 3 {
			n.write("b", "drifted")
			n.has("b", "two")
		}
		n.after(runner.Within - 11*time.Second)
		n.has("a", "again")
		n.take()
		n.after(2 * time.Second)
		n.has("a", "one")
		reports := n.take()
		if len(reports) == 0 {
			t.Fatal("nothing is reported")
		}
		var repaired model.Transaction
		n.decode(reports[0], &repaired)
		if repaired.Drift == nil || !repaired.Drift.SeenAt.Equal(seen) || repaired.Drift.Latency < 40*time.Second {
			t.Errorf("reported %s, seen at %s", reports[0].Data, seen)
		}
	})
}

// TestDriftOfWhatIsPutOff: a delayed resource is not observed before its time, whatever its events.
func TestDriftOfWhatIsPutOff(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.files", n.with("limit: 1, ", "a", "content: one", "b", "content: two"))
		n.settle()
		n.take()
		for i := range 3 {
			n.write("b", fmt.Sprint("somebody else ", i))
		}
		n.tells()
		n.after(runner.Within)
		n.has("b", "two")
	})
}

// TestLimitIsLifted: the next version holds at once.
func TestLimitIsLifted(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.limited", n.with("limit: 1, ", "a", "content: x", "b", "content: x", "c", "content: x"))
		n.settle()
		n.lacks("b")
		n.bucket.put("group.all.limited", n.with("limit: 2, ", "a", "content: x", "b", "content: x", "c", "content: x"))
		n.settle()
		n.has("b", "x")
		n.lacks("c")
		n.bucket.put("group.all.limited", n.with("", "a", "content: x", "b", "content: x", "c", "content: x"))
		n.settle()
		n.has("c", "x")
	})
}

// TestLimitOfWhatFollowsARepair: a refresh that is put off is made when the minute is over,
// and until then the manifest is not up to date.
func TestLimitOfWhatFollowsARepair(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		restart := fmt.Sprintf(`resources: [{exec: [{restart: {command: "echo x >>%s", provider: shell, refresh_only: true, limit: 1, subscribe: ["file#%s"]}}]},`, n.path("restarts"), n.path("conf"))
		n.bucket.put("group.all.files", strings.Replace(n.with("", "conf", "content: one"), "resources: [", restart, 1))
		n.settle()
		n.has("restarts", "x\n")
		n.after(10 * time.Second)
		n.take()
		until := time.Now().Add(runner.Within - 10*time.Second)
		n.write("conf", "drifted")
		n.has("conf", "one")
		n.has("restarts", "x\n")
		n.tells("transaction changed file#conf", "transaction notrun exec#restart", "run notrun group.all.files drift")
		s := n.agent.Describe().Manifests[0]
		if s.State.Outcome != "" || !strings.HasPrefix(s.State.Error, "1 of its resources put off by a limit") {
			t.Errorf("the state is %+v", s.State)
		}
		if d := s.Last.Deviations; len(d) != 1 || d[0].Resource != "exec#restart" || d[0].Outcome != model.OutcomeNotRun {
			t.Errorf("not in their desired state: %+v", d)
		}
		n.after(time.Until(until) - time.Second)
		n.has("restarts", "x\n")
		n.after(2 * time.Second)
		n.has("restarts", "x\nx\n")
		if s := n.agent.Describe().Manifests[0]; s.State.Outcome != model.OutcomeChanged || s.State.Error != "" || len(s.Last.Deviations) != 0 {
			t.Errorf("the state is %+v, %+v", s.State, s.Last)
		}
	})
}

// TestLimitIsLiftedForRepairs: what a limit put off before is repaired at once again.
func TestLimitIsLiftedForRepairs(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.start()
		n.bucket.put("group.all.files", n.with("limit: 1, ", "a", "content: one"))
		n.settle()
		n.write("a", "drifted")
		n.has("a", "drifted")
		n.bucket.put("group.all.files", n.with("", "a", "content: one"))
		n.settle()
		n.has("a", "one")
		n.write("a", "again")
		n.has("a", "one")
	})
}

// TestLimitIsNotOfIncluding counts the resources of an included manifest, not the including one.
func TestLimitIsNotOfIncluding(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		if err := os.WriteFile(n.path("child.yaml"), []byte(n.with("limit: 1, ", "a", "content: x", "b", "content: x")), 0o644); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.parent", fmt.Sprintf("muster: {limit: 2, resources: [{apply: [%s: {}]}]}", n.path("child.yaml")))
		n.settle()
		if s := n.agent.State().Manifests["group.all.parent"]; s.Outcome != model.OutcomeChanged || s.Counts.Changed != 3 {
			t.Errorf("it is %q, %q, %+v", s.Outcome, s.Error, s.Counts)
		}
	})
}

// TestLimitBesideWhatAlwaysChanges: a command without guards does not take the slot of later resources.
func TestLimitBesideWhatAlwaysChanges(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		files := n.with("limit: 1, ", "a", "content: x", "b", "content: x")
		n.bucket.put("group.all.limited", strings.Replace(files, "resources: [", `resources: [{exec: [{"true": {}}]},`, 1))
		n.settle()
		n.lacks("a")
		n.after(4 * runner.Within)
		n.has("a", "x")
		n.has("b", "x")
	})
}

// cure finds a resource critical until it was refreshed as often as it wants.
type cure struct {
	*node
	want atomic.Int32
}

// CheckAll makes the checks.
func (c *cure) CheckAll(_ context.Context, checks []model.HealthCheck, _ []string) []model.HealthResult {
	out := make([]model.HealthResult, len(checks))
	for i, check := range checks {
		out[i] = model.HealthResult{Name: check.Name, Format: check.Format, Tries: 1, Status: model.HealthOK}
		if c.restarts() < int(c.want.Load()) {
			out[i].Status = model.HealthCritical
		}
	}

	return out
}

// TestLimitPutsOffARefreshOfHealth: a resource with a critical check is refreshed after the minute.
func TestLimitPutsOffARefreshOfHealth(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		c := &cure{node: n}
		n.checker = c
		n.config.HealthInterval, n.config.Interval = model.Duration(54*time.Second), model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.shop", strings.Replace(n.shop(), "refresh_only: true", "refresh_only: true, limit: 1", 1))
		n.settle()
		c.want.Store(1)
		n.after(62 * time.Second)
		if n.restarts() != 1 {
			t.Fatalf("it was refreshed %d times", n.restarts())
		}
		c.want.Store(2)
		n.take()
		for told := ""; !strings.Contains(told, "transaction notrun exec#restart"); told = strings.Join(n.told(), "\n") {
			n.after(time.Second)
		}
		n.after(12 * time.Second)
		if n.restarts() != 2 {
			t.Errorf("it was refreshed %d times, want 2", n.restarts())
		}
	})
}

// TestTurnThatIsNotNeeded: if the longest delayed resource needs no change at its time, the next delayed one
// is changed, whatever its position.
func TestTurnThatIsNotNeeded(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"a", "c", "b"}} {
		bubble(t, func(t *testing.T, n *node) {
			n.watching()
			n.start()
			var files []string
			for _, name := range order {
				files = append(files, name, "content: x")
			}
			n.bucket.put("group.all.limited", n.with("limit: 1, ", files...))
			for range order {
				n.after(runner.Within)
			}
			for _, name := range []string{"a", "b", "c"} {
				n.write(name, "drifted")
			}
			n.has("a", "x")
			n.write("b", "x")
			n.has("c", "drifted")
			n.after(runner.Within)
			n.has("c", "x")
		})
	}
}
