package agent_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/pace"
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

// TestLimitOfAManifest spreads the changes of a manifest over minutes; others go on.
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
		until := time.Now().Add(pace.Within).UTC().Format("15:04:05")
		want := "3 resources are put off by a limit of changes a minute, until " + until + " UTC"
		if s := n.agent.State().Manifests["group.all.limited"]; s.Outcome != "" || s.Error != want || s.Counts.NotRun != 3 {
			t.Errorf("it is %q, %q, %+v; want %q", s.Outcome, s.Error, s.Counts, want)
		}
		n.tells("transaction changed file#a", "transaction changed file#b", "transaction notrun file#c", "transaction notrun file#d", "transaction notrun file#e", "run notrun group.all.limited manifest")
		n.put("group.all.other", "other", "y")
		n.has("other", "y")
		n.take()
		n.after(pace.Within - time.Second)
		if got := n.present(names...); got != 2 {
			t.Errorf("%d files are there before the minute is over, want 2", got)
		}
		n.after(2 * time.Second)
		if got := n.present(names...); got != 4 {
			t.Errorf("%d files are there after a minute, want 4", got)
		}
		n.after(pace.Within)
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
			n.after(pace.Within)
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
		n.after(pace.Within)
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
		n.after(pace.Within - 11*time.Second)
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
