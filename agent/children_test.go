package agent_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// parent is a manifest that includes path, which it makes itself where text is not empty.
func (n *node) parent(path, text string) string {
	out := "muster:\n  resources:\n"
	if text != "" {
		out += strings.TrimPrefix(n.manifest(path, "CHILD"), out)
		out = strings.Replace(out, `"CHILD"`, "'"+text+"'", 1)
	}

	return out + "    - apply: [" + n.path(path) + ": {}]\n"
}

// child is a manifest on one line, of a file with some properties more.
func (n *node) child(file, content, more string) string {
	text := strings.Split(strings.TrimSpace(n.manifest(file, content)), "\n")
	item := strings.TrimPrefix(strings.TrimSpace(text[len(text)-1]), "- ")

	return "muster: {resources: [{file: [" + strings.Replace(item, `mode: "0644"`, `mode: "0644"`+more, 1) + "]}]}"
}

// TestDriftOfChildren counts for the assignment, also if the children are read during the run.
func TestDriftOfChildren(t *testing.T) {
	for _, late := range []bool{false, true} {
		for drift, want := range map[string]bool{"report": false, "ignore": false, "repair": true} {
			bubble(t, func(t *testing.T, n *node) {
				child := n.child("motd", "hello", "")
				n.start()
				if late {
					n.bucket.put("group.all.motd", n.assignment("drift: "+drift, n.parent("child.yaml", child)))
				} else {
					if err := os.WriteFile(n.path("child.yaml"), []byte(child), 0o600); err != nil {
						t.Fatal(err)
					}
					n.bucket.put("group.all.motd", n.assignment("drift: "+drift, n.parent("child.yaml", "")))
				}
				n.settle()
				n.has("motd", "hello")
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.take()
				n.after(6 * time.Minute)
				run := n.lastRun()
				if _, err := os.Stat(n.path("motd")); (err == nil) != want {
					t.Errorf("late %v, %s: %v", late, drift, err)
				}
				if detected := map[string]int{"report": 1, "repair": 1}[drift]; run.Drift.Detected != detected {
					t.Errorf("late %v, %s: %+v", late, drift, run.Drift)
				}
			})
		}
	}
}

// TestChildIsReadAgain at every run: it is a file that anyone may have changed.
func TestChildIsReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		write := func(text string) {
			if err := os.WriteFile(n.path("child.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		n.start()
		write(n.child("motd", "one", ""))
		n.bucket.put("group.all.motd", n.parent("child.yaml", ""))
		n.settle()
		n.has("motd", "one")
		write(n.child("motd", "two", ""))
		n.after(6 * time.Minute)
		n.has("motd", "two")
		n.take()
		// An invalid version leaves the last good one active.
		write("muster: {resources: [{fiel: []}]}")
		n.after(6 * time.Minute)
		if !slices.ContainsFunc(n.take(), func(r model.Report) bool { return strings.Contains(string(r.Data), "child.yaml:1:23: ") }) {
			t.Error("it is not reported")
		}
		n.has("motd", "two")
	})
}

// TestPollOfLateChildren starts after their first run.
func TestPollOfLateChildren(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.Interval = model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.motd", n.parent("child.yaml", n.child("motd", "hello", ", poll: 5m")))
		n.settle()
		n.take()
		n.after(2 * time.Hour)
		if runs := len(n.take()); runs < 20 || runs > 28 {
			t.Errorf("%d runs", runs)
		}
	})
}

// TestLateChildInConflict is refused like a manifest that is known before.
func TestLateChildInConflict(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.a", "motd", "theirs")
		n.bucket.put("group.all.b", n.parent("child.yaml", n.child("motd", "ours", "")))
		n.settle()
		run := n.lastRun()
		if text := strings.Join(run.Errors, "\n"); !strings.Contains(text, "already declared differently") || !strings.Contains(text, "child.yaml:1:") || run.Counts.Failed != 1 {
			t.Errorf("%+v", run)
		}
		n.has("motd", "theirs")
	})
}

// TestMaxDepth is set by the configuration.
func TestMaxDepth(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.MaxDepth = 1
		n.start()
		if err := os.WriteFile(n.path("child.yaml"), []byte("muster: {resources: [{apply: [grandchild.yaml: {}]}]}"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.a", n.parent("child.yaml", ""))
		n.settle()
		if run := n.lastRun(); !run.Refused || !strings.Contains(strings.Join(run.Errors, "\n"), "more than 1 levels deep") {
			t.Errorf("%+v", run)
		}
	})
}

// TestRequestWithAChild answers with the result of the apply. A relative path has no base directory.
func TestRequestWithAChild(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		if err := os.WriteFile(n.path("child.yaml"), []byte(n.child("motd", "hello", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		ask := func(name string) model.EnsureResponse {
			var got []model.EnsureResponse
			n.agent.Requests().Ensure(t.Context(), nil, []byte(`{"protocol": "`+model.ProtocolEnsureRequest+`", "type": "apply", "properties": {"name": "`+name+`"}}`), func(r model.EnsureResponse) { got = append(got, r) })
			n.settle()
			return got[len(got)-1]
		}
		status, err := n.agent.Requests().Status(t.Context(), []byte(`{"protocol": "`+model.ProtocolEnsureRequest+`", "type": "apply", "properties": {"name": "`+n.path("child.yaml")+`"}}`))
		if err != nil || !strings.Contains(string(status), `"resources":1,"changed":1`) {
			t.Errorf("%s %v", status, err)
		}
		n.lacks("motd")
		if r := ask(n.path("child.yaml")); r.Phase != model.EnsureDone || r.State == nil || r.State.Type != "apply" || !r.State.Changed {
			t.Errorf("%+v", r)
		}
		n.has("motd", "hello")
		if r := ask("child.yaml"); r.Phase != model.EnsureFailed || !strings.Contains(r.Error, "give an absolute path") {
			t.Errorf("%+v", r)
		}
		lines := strings.Split(n.log.String(), "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "motd changed") })
		if at < 0 || !strings.Contains(lines[at], "assignment=ensure") || strings.Count(lines[at], "manifest=") != 1 {
			t.Errorf("%q", lines)
		}
	})
}
