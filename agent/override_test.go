package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

// TestOverrideThatIsNotValid: the group's version stays active until the override is valid for the first
// time, and the reports say so.
func TestOverrideThatIsNotValid(t *testing.T) {
	for name, override := range map[string]func(n *node) string{
		"garbage":  func(*node) string { return "muster: [" },
		"invalid":  func(*node) string { return "muster:\n  resources:\n    - file:\n        - relative: {}\n" },
		"conflict": func(n *node) string { return n.manifest("other", "not as the other one says") },
		"may pass": func(*node) string {
			return "protocol: io.muster.v1.assignment\nbundle: sha256-" + strings.Repeat("0", 64) + "\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				const own, group = "node.web01_example_net.motd", "group.web.motd"
				n.start()
				n.put("node.web01_example_net.a", "other", "x")
				good := n.put(group, "motd", "group's")
				bad := n.bucket.put(own, override(n))
				n.settle()
				state := n.agent.State().Manifests
				if state[group].Revision != good || state[group].Outcome == "" || state[own].Revision != 0 || state[own].Seen != bad {
					t.Errorf("the state is %+v", state)
				}
				if name != "may pass" {
					if late := state[own].Late; !strings.HasPrefix(late, "refused: ") || !strings.HasSuffix(late, fmt.Sprintf("%s revision %d stays in force", group, good)) {
						t.Errorf("late is %q", late)
					}
					if !strings.Contains(n.log.String(), fmt.Sprintf(`active="group.web.motd revision %d stays in force"`, good)) {
						t.Error("the log does not say it")
					}
				}
				n.put(group, "motd", "group's of now")
				n.has("motd", "group's of now")
				n.stop()
				n.start()
				n.put(group, "motd", "after a restart")
				n.has("motd", "after a restart")

				valid := n.put(own, "motd", "own")
				n.has("motd", "own")
				n.bucket.put(own, override(n))
				n.settle()
				n.put(group, "motd", "group's later")
				n.after(10 * time.Minute)
				n.has("motd", "own")
				if got := n.agent.State().Manifests[own]; got.Revision != valid {
					t.Errorf("the state is %+v", got)
				}
				n.bucket.remove(own)
				n.settle()
				n.has("motd", "group's later")
			})
		})
	}
}

func TestNothingWasEverValid(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.web.motd", "muster: [")
		n.take()
		got := n.agent.State().Manifests["group.web.motd"]
		if got.Revision != 0 || got.Outcome != model.Outcome("") || !strings.HasSuffix(got.Late, "nothing of motd is in force") {
			t.Errorf("the state is %+v", got)
		}
		if strings.Contains(n.log.String(), "stays in force") || !strings.Contains(n.log.String(), `active="nothing of motd is in force"`) {
			t.Error("the log does not say it")
		}
	})
}

// TestLogSaysItOnce: a temporary problem is a warning once, a problem of a manifest once per revision.
func TestLogSaysItOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.a", "protocol: io.muster.v1.assignment\nbundle: sha256-"+strings.Repeat("0", 64)+"\n")
		// With ensure: absent the content is of no use; the fact makes it be resolved at each run.
		n.bucket.put("group.all.b", "muster:\n  resources:\n    - file:\n        - "+n.path("gone")+": {ensure: absent, content: \"{{ lookup('facts.role') }}\"}\n")
		n.after(2 * time.Hour)
		log := n.log.String()
		if got := strings.Count(log, `level=WARN msg="assignment not ready`); got != 1 {
			t.Errorf("%d warnings of what may pass", got)
		}
		if got := strings.Count(log, "warning="); got != 1 {
			t.Errorf("%d warnings of the manifest", got)
		}
	})
}

// TestWarningsOfChangedFacts: facts change the text of a warning, so the log gets the new one.
func TestWarningsOfChangedFacts(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.a", "muster:\n  resources:\n    - exec:\n        - /bin/true: {command: \"/bin/true {{ lookup('facts.role') }}\", refresh_only: true}\n")
		n.after(time.Hour)
		before := strings.Count(n.log.String(), "stays one argument")
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "web and db"} })
		n.after(2 * time.Hour)
		if got := strings.Count(n.log.String(), "stays one argument"); before != 0 || got != 1 {
			t.Errorf("%d warnings before, %d after:\n%s", before, got, n.log.String())
		}
	})
}
