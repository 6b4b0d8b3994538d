package agent_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/testing/hosttest"
)

// A put with headers of the server about kind and source of a message is rejected like garbage, and ends
// nothing.
func TestHeadersOfTheServerAreReportedAndTheLastGoodStays(t *testing.T) {
	for name, header := range map[string]nats.Header{
		"status":   {"Status": {"404"}},
		"origin":   {"Nats-Stream": {"EVIL"}, "Nats-Sequence": {"1"}},
		"deletion": {"Status": {"503"}, "KV-Operation": {"DEL"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.put("group.all.motd", "motd", "hello\n")
				n.take()
				if _, err := n.nats.Publish(t.Context(), &nats.Msg{Subject: "$KV.MUSTER_MANIFESTS.group.all.motd", Header: header}); err != nil {
					t.Fatal(err)
				}
				reports := n.take()
				if len(reports) != 2 || reports[0].Kind+string(reports[0].Outcome) != "runrefused" || reports[1].Kind+string(reports[1].Outcome) != "noderefused" {
					t.Fatalf("reported %+v", reports)
				}
				if text := string(reports[1].Data); !strings.Contains(text, "headers that only the server sets") || !strings.Contains(text, "stays in force") {
					t.Errorf("the reason is %s", text)
				}
				if message := n.agent.State().Message; !strings.Contains(message, "answers of NATS refused") {
					t.Errorf("the message is %q", message)
				}
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.after(6 * time.Minute)
				n.has("motd", "hello\n")
				n.tells("transaction changed file#motd", "run changed group.all.motd schedule")
				n.put("group.all.motd", "motd", "good again\n")
				n.has("motd", "good again\n")
			})
		})
	}
}

// A key with unreadable headers is rejected alone.
func TestUnreadableHeadersAreReportedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		bucket.change(func() { bucket.sync.Unreadable = []string{"group.all.motd"} })
		n.settle()
		n.tells("node refused")
		if message := n.agent.State().Message; !strings.Contains(message, "unreadable headers") || !strings.Contains(message, "group.all.motd") {
			t.Errorf("the message is %q", message)
		}
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(6 * time.Minute)
		n.has("motd", "hello\n")
		n.tells("transaction changed file#motd", "run changed group.all.motd schedule")
		bucket.change(func() { bucket.sync.Unreadable = nil })
		n.settle()
		if message := n.agent.State().Message; message != "" {
			t.Errorf("the message is %q", message)
		}
	})
}

// An operator of a group may store any number of keys: they are one line and one report.
func TestManyUnreadableKeysAreReportedTogether(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprintf("group.all.a%03d", i))
		}
		bucket.change(func() { bucket.sync.Unreadable = keys })
		n.settle()
		n.tells("node refused")
		if message := n.agent.State().Message; !strings.Contains(message, "group.all.a004 and 95 more (") {
			t.Errorf("the message is %q", message)
		}
		if text := n.log.String(); strings.Count(text, "assignment rejected") != 1 {
			t.Errorf("logged\n%s", text)
		}
	})
}

// So may they queue any number of requests that must not be executed.
func TestManyRefusedCommandsAreAFewLines(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		for i := range 100 {
			n.agent.Requests().Refuse(t.Context(), fmt.Sprint("no id ", i), errors.New("unreadable"))
		}
		if text := n.log.String(); strings.Count(text, "command rejected") != 10 {
			t.Errorf("logged\n%s", text)
		}
	})
}

func TestGarbageIsReportedOnceAndTheLastGoodStays(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		garbage := n.bucket.put("group.all.motd", "muster:\n  resourcs: []\n  fail_on_error: [\n")
		reports := n.take()
		if len(reports) != 2 || reports[0].Kind+string(reports[0].Outcome) != "runrefused" || reports[1].Kind+string(reports[1].Outcome) != "noderefused" {
			t.Fatalf("reported %+v", reports)
		}
		var run model.Run
		n.decode(reports[0], &run)
		if !run.Refused || run.Revision != garbage || len(run.Errors) == 0 || !strings.Contains(run.Errors[0], "group.all.motd:") {
			t.Errorf("the run is %+v", run)
		}
		state := n.agent.State().Manifests["group.all.motd"]
		if state.Seen != garbage || state.Revision == garbage || !strings.HasPrefix(state.Late, "refused: ") {
			t.Errorf("the state is %+v", state)
		}
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(6 * time.Minute)
		n.has("motd", "hello\n")
		n.tells("transaction changed file#motd", "run changed group.all.motd schedule")

		n.stop()
		n.take()
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.has("motd", "hello\n")
		n.tells("transaction changed file#motd", "run changed group.all.motd schedule")
		if got := n.agent.State().Manifests["group.all.motd"]; got.Late == "" || got.Seen != garbage {
			t.Errorf("after a restart the state is %+v", got)
		}

		n.put("group.all.motd", "motd", "good again\n")
		n.has("motd", "good again\n")
		if got := n.agent.State().Manifests["group.all.motd"]; got.Late != "" || got.Seen != 0 {
			t.Errorf("after a good version the state is %+v", got)
		}
	})
}

// TestNothingOfAKeyIsValid: the newest version is garbage, and the last good one is invalid after an upgrade
// that removed a type. Each is reported once.
func TestNothingOfAKeyIsValid(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.put("group.all.a", "a", "x")
		n.bucket.put("group.all.slow", s.manifest("a", "x"))
		n.settle()
		n.stop()
		n.bucket.put("group.all.slow", "muster: [")
		n.types = resources.All()
		n.take()
		n.start()
		n.tells("run refused group.all.slow manifest", "node refused", "run refused group.all.slow manifest", "node refused",
			"run stable group.all.a schedule")
		for range 3 {
			if _, _, err := n.agent.Reload(t.Context(), n.agent.Config()); err != nil { // all is looked at again
				t.Fatal(err)
			}
			n.settle()
		}
		n.stop()
		n.start()
		n.after(time.Minute)
		n.tells("run stable group.all.a schedule")
	})
}

func TestEveryProblemIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.bad", "muster:\n  resources:\n    - file:\n        - /etc/x: {ownr: root, group: root, mode: \"0644\"}\n        - relative: {owner: root, group: root, mode: \"9\"}\n")
		run := n.lastRun()
		text := strings.Join(run.Errors, "\n")
		for _, want := range []string{"group.all.bad:4:", "ownr", "did you mean `owner`", "group.all.bad:5:"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		if len(run.Errors) < 3 {
			t.Errorf("only %d problems: %q", len(run.Errors), run.Errors)
		}
	})
}

func TestSameResourceInTwoManifests(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("node.web01_example_net.b", "shared", "one\n", "own-b", "x")
		n.put("group.web.a", "shared", "one\n", "own-a", "x")
		n.has("own-a", "x")
		n.take()

		bad := n.put("group.web.a", "shared", "two\n", "own-a", "y")
		run := n.lastRun()
		text := strings.Join(run.Errors, "\n")
		if !run.Refused || run.Revision != bad || !strings.Contains(text, "group.web.a:4:") || !strings.Contains(text, "by node.web01_example_net.b, which is active") || !strings.Contains(text, "already declared differently") {
			t.Errorf("the run is %+v", run)
		}
		n.has("shared", "one\n")
		n.has("own-a", "x")
		n.after(6 * time.Minute)
		n.tells("run stable node.web01_example_net.b schedule", "run stable group.web.a schedule")

		n.put("node.web01_example_net.b", "own-b", "x")
		n.has("shared", "two\n")
		n.has("own-a", "y")
	})
}

// TestNewcomerInConflict is rejected whatever its name and family: the manifest in
// force stays so, also across a restart, until it declares something else.
func TestNewcomerInConflict(t *testing.T) {
	for _, newcomer := range []string{"node.web01_example_net.b", "group.web.a", "group.web.z", "group.all.b"} {
		t.Run(newcomer, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.put("group.web.m", "shared", "incumbent\n")
				n.put(newcomer, "shared", "newcomer\n", "own", "x")
				for restarts := range 2 {
					n.has("shared", "incumbent\n")
					n.after(6 * time.Minute)
					n.has("shared", "incumbent\n")
					states := n.agent.State().Manifests
					if late := states[newcomer].Late; !strings.Contains(late, "already declared differently") || states["group.web.m"].Late != "" {
						t.Errorf("after %d restarts %+v", restarts, states)
					}
					n.stop()
					n.start()
				}
				n.put("group.web.m", "another", "y")
				n.has("shared", "newcomer\n")
				n.has("own", "x")
			})
		})
	}
}

// TestTwoChangesInConflict: manifests in force that change in one pass. Where their
// new versions agree both become active; else what conflicts with one in force is
// rejected, and nothing goes out of force, also across a restart.
func TestTwoChangesInConflict(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string][]string
		files         map[string]string
		late          []string
	}{
		"they agree": {
			map[string][]string{"group.web.a": {"shared", "one\n"}, "group.web.b": {"shared", "one\n"}},
			map[string][]string{"group.web.a": {"shared", "two\n"}, "group.web.b": {"shared", "two\n"}},
			map[string]string{"shared": "two\n"}, nil,
		},
		"they exchange a resource": {
			map[string][]string{"group.web.a": {"p", "a\n"}, "group.web.b": {"q", "b\n"}},
			map[string][]string{"group.web.a": {"q", "a\n"}, "group.web.b": {"p", "b\n"}},
			map[string]string{"p": "b\n", "q": "a\n"}, nil,
		},
		"they disagree": {
			map[string][]string{"group.web.a": {"shared", "one\n"}, "group.web.b": {"shared", "one\n"}},
			map[string][]string{"group.web.a": {"shared", "two\n"}, "group.web.b": {"shared", "three\n"}},
			map[string]string{"shared": "one\n"}, []string{"group.web.a", "group.web.b"},
		},
		"one takes what the other has": {
			map[string][]string{"group.web.a": {"p", "a\n"}, "group.web.b": {"q", "b\n"}},
			map[string][]string{"group.web.a": {"p", "a\n", "q", "a\n"}, "group.web.b": {"q", "c\n"}},
			map[string]string{"p": "a\n", "q": "c\n"}, []string{"group.web.a"},
		},
		"an override that changes too": {
			map[string][]string{"group.web.a": {"p", "a\n"}, "group.web.b": {"q", "b\n"}},
			map[string][]string{"group.web.a": {"q", "a\n"}, "node.web01_example_net.b": {"q", "c\n"}},
			map[string]string{"p": "a\n", "q": "c\n"}, []string{"group.web.a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				for key, files := range c.before {
					n.put(key, files...)
				}
				n.stop()
				for key, files := range c.after {
					n.bucket.put(key, n.manifest(files...))
				}
				for restarts := range 2 {
					n.start()
					n.after(6 * time.Minute)
					for file, text := range c.files {
						n.has(file, text)
					}
					var late []string
					for key, state := range n.agent.State().Manifests {
						if strings.Contains(state.Late, "already declared differently") {
							late = append(late, key)
						}
						if state.Revision == 0 && key != "group.web.b" {
							t.Errorf("after %d restarts nothing of %s is in force: %+v", restarts, key, state)
						}
					}
					slices.Sort(late)
					if !slices.Equal(late, c.late) {
						t.Errorf("after %d restarts %q are late, not %q: %+v", restarts, late, c.late, n.agent.State().Manifests)
					}
					n.stop()
				}
			})
		})
	}
}

// TestOverrideInConflict: a rejected override leaves the overridden version active, also if a new manifest
// wants the same resource.
func TestOverrideInConflict(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.web.m", "shared", "m\n")
		n.put("group.web.n", "other", "n\n")
		n.stop()
		n.bucket.put("group.web.a", n.manifest("other", "a\n"))
		n.bucket.put("node.web01_example_net.n", n.manifest("shared", "n\n"))
		n.start()
		n.settle()
		n.has("shared", "m\n")
		n.has("other", "n\n")
		states := n.agent.State().Manifests
		if states["group.web.n"].Late != "" || !strings.Contains(states["group.web.a"].Late, "already declared differently") || !strings.Contains(states["node.web01_example_net.n"].Late, "already declared differently") {
			t.Errorf("%+v", states)
		}
	})
}

func TestWhatMayPassIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		text := n.manifest("motd", "CONTENT")
		n.bucket.put("group.all.motd", strings.Replace(text, "CONTENT", "${ kvGet('settings', 'motd') }", 1))
		run := n.lastRun()
		if run.Refused || run.Outcome() != model.OutcomeFailed || !strings.Contains(run.Errors[0], errAway.Error()) {
			t.Errorf("the run is %+v", run)
		}
		n.after(10 * time.Minute)
		n.tells()
		n.outside.setKV("from kv", nil)
		n.after(10 * time.Minute)
		n.has("motd", "from kv")
		n.take()

		// It came to something once: that stays in force while the key cannot be read.
		n.outside.setKV("", errAway)
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.take()
		n.after(6 * time.Minute)
		n.has("motd", "from kv")
		if late := n.agent.State().Manifests["group.all.motd"].Late; !strings.Contains(late, errAway.Error()) {
			t.Errorf("late is %q", late)
		}
		n.after(time.Hour)
		failures := 0
		for _, word := range n.told() {
			if strings.HasPrefix(word, "run failed") {
				failures++
			}
		}
		if failures != 1 {
			t.Errorf("what may pass was reported %d times", failures)
		}

		// Its result differs now without a new revision.
		n.outside.setKV("changed in kv", nil)
		n.after(6 * time.Minute)
		n.has("motd", "changed in kv")
		if late := n.agent.State().Manifests["group.all.motd"].Late; late != "" {
			t.Errorf("late is %q", late)
		}
	})
}

func TestConnectedEndsTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.motd", strings.Replace(n.manifest("motd", "CONTENT"), "CONTENT", "${ kvGet('settings', 'motd') }", 1))
		n.after(30 * time.Minute)
		n.outside.setKV("from kv", nil)
		n.agent.Connected()
		n.settle()
		n.has("motd", "from kv")
	})
}

func TestAssignmentDocuments(t *testing.T) {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "sha256-" + hex.EncodeToString(sum[:])
	}
	for name, c := range map[string]struct {
		more string
		// applied says that the file is written, else problem is reported, or nothing.
		applied bool
		problem string
	}{
		"plain":              {"name: motd", true, ""},
		"issued":             {"issued: 2000-01-01T00:00:00Z", true, ""},
		"when true":          {"when: lookup('facts.role') == 'web'", true, ""},
		"when false":         {"when: lookup('facts.role') == 'db'", false, ""},
		"when no boolean":    {"when: lookup('facts.role')", false, "group.all.motd:2:7: `when` must be true or false, not a string"},
		"when broken":        {"when: lookup(", false, "group.all.motd:2:7: `when` is not a valid expression: "},
		"expired":            {"expires: 1999-12-31T23:59:59Z", false, ""},
		"expires later":      {"expires: 2000-01-02T00:00:00Z", true, ""},
		"expires garbage":    {"expires: soon", false, "group.all.motd:2:10: `expires`"},
		"noop":               {"noop: true", false, "noop"},
		"noop garbage":       {"noop: maybe", false, "group.all.motd:2:7: `noop` must be true or false, not \"maybe\""},
		"unknown key":        {"intervall: 5m", false, "group.all.motd:2:1: unknown key `intervall` (did you mean `interval`?)"},
		"rollout":            {"rollout: {id: x}", false, "unknown key `rollout`"},
		"wrong name":         {"name: other", false, "group.all.motd:2:7: the name is \"other\""},
		"wrong digest":       {"digest: " + digest("x"), false, "group.all.motd:2:9: the digest does not match"},
		"drift garbage":      {"drift: never", false, "group.all.motd:2:8: `drift` cannot be \"never\""},
		"interval too short": {"interval: 1ms", false, "group.all.motd:2:11: `interval` must be at least 1s"},
		"interval garbage":   {"interval: 5", false, "group.all.motd:2:11: `interval`: invalid duration"},
		"priority garbage":   {"priority: high", false, "group.all.motd:2:11: `priority` must be a whole number"},
		"bundle beside it":   {"bundle: " + digest("x"), false, "either a `manifest` or a `bundle`"},
		"data wins":          {"data: {greeting: hi}", true, ""},
		"data garbage":       {"data: [1]", false, "group.all.motd:2:7: `data` must be a mapping, not a list"},
		"key twice":          {"noop: false\nnoop: true", false, "group.all.motd:3:1: duplicate key `noop`"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.take()
				n.bucket.put("group.all.motd", n.assignment(c.more, n.manifest("motd", "hello")))
				reports := n.take()
				if c.applied {
					n.has("motd", "hello")
				} else {
					n.lacks("motd")
				}
				if c.problem == "" {
					if !c.applied && len(reports) > 0 {
						t.Errorf("reported %+v", reports)
					}
					return
				}
				text := ""
				for _, r := range reports {
					text += string(r.Outcome) + " " + strings.ReplaceAll(string(r.Data), `\"`, `"`)
				}
				if !strings.Contains(text, c.problem) {
					t.Errorf("%q is not in %s", c.problem, text)
				}
			})
		})
	}
}

func TestAssignmentDigestAndRevision(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.motd", n.assignment("name: motd", n.manifest("motd", "hello")))
		first := n.lastRun()
		revision := n.bucket.put("group.all.motd", n.assignment("digest: "+first.Digest, n.manifest("motd", "hello")))
		second := n.lastRun()
		if second.Refused || second.Digest != first.Digest || second.Revision != revision || revision <= first.Revision || second.Cause != model.CauseManifest {
			t.Errorf("the run is %+v after %+v", second, first)
		}
	})
}

func TestOtherDocuments(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"envelope":         {`{"payloadType": "application/vnd.x", "payload": "eA==", "signatures": []}`, "broken signed envelope: its payloadType is"},
		"unknown protocol": {"protocol: io.muster.v2.assignment\n", "group.all.motd:1:11: the protocol \\\"io.muster.v2.assignment\\\" is not known"},
		"no manifest":      {"protocol: io.muster.v1.assignment\n", "either a `manifest` or a `bundle`"},
		"no digest":        {"protocol: io.muster.v1.assignment\nbundle: sha256-12\n", "invalid bundle digest"},
		"not YAML":         {"protocol: [\n", "group.all.motd"},
		"a list":           {"- protocol\n", "must be a mapping"},
		"empty":            {"", "empty"},
		"binary":           {"\x00\x01protocol", "group.all.motd"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.take()
				n.bucket.put("group.all.motd", c.value)
				reports := n.take()
				if len(reports) != 2 || !strings.Contains(string(reports[0].Data), c.want) {
					t.Errorf("reported %+v", reports)
				}
			})
		})
	}
}

func TestAssignmentThatExpires(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("node.web01_example_net.motd", n.assignment("expires: 2000-01-01T01:00:00Z", n.manifest("motd", "for an hour")))
		n.put("group.all.motd", "motd", "for ever")
		n.after(59 * time.Minute)
		n.has("motd", "for an hour")
		n.after(2 * time.Minute)
		n.has("motd", "for ever")
	})
}

// gone fails the test unless the node reports a known revision of a manifest, and none that ran.
func (n *node) gone(key string, seen uint64) {
	n.t.Helper()
	if got := n.agent.State().Manifests[key]; got.SeenAt.IsZero() || got != (model.ManifestState{Seen: seen, SeenAt: got.SeenAt}) {
		n.t.Errorf("the state of %s is %+v", key, got)
	}
}

func TestStateOfWhatDoesNotApplyAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "db"} })
		n.start()
		expires := n.bucket.put("group.all.motd", n.assignment("expires: 2000-01-01T01:00:00Z", n.manifest("motd", "x")))
		when := n.bucket.put("group.all.db", n.assignment("when: lookup('facts.role') == 'db'", n.manifest("db", "x")))
		n.after(59 * time.Minute)
		for key, revision := range map[string]uint64{"group.all.motd": expires, "group.all.db": when} {
			if got := n.agent.State().Manifests[key]; got.Revision != revision || got.Outcome == "" || got.Seen != 0 {
				t.Errorf("the state of %s is %+v", key, got)
			}
		}
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "web"} })
		n.after(6 * time.Minute)
		n.gone("group.all.motd", expires)
		n.gone("group.all.db", when)
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "db"} })
		n.after(6 * time.Minute)
		if got := n.agent.State().Manifests["group.all.db"]; got.Revision != when || got.Outcome != model.OutcomeStable || got.Seen != 0 {
			t.Errorf("the state of what applies again is %+v", got)
		}
	})
}

// TestNewFactFileCountsForTheNextAssignment: the facts are read again when an
// assignment arrives and a fact file changed, not only on the interval.
func TestNewFactFileCountsForTheNextAssignment(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.FactsDir = t.TempDir()
		n.start()
		text := n.assignment("when: lookup('facts.role') == 'db'", strings.Replace(n.manifest("motd", "CONTENT"), "CONTENT", "${ Facts.newfact }", 1))
		n.settle()
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "db", "newfact": "new"} })
		if err := os.WriteFile(filepath.Join(n.config.FactsDir, "facts.yaml"), []byte("newfact: new\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.motd", text)
		n.settle()
		n.has("motd", "new")
		if n.resolved != 1 {
			t.Errorf("it was resolved %d times", n.resolved)
		}
		n.after(time.Minute)
		if _, published, _ := n.stream.stored(); len(published) != 2 || published[1]["newfact"] != "new" {
			t.Errorf("the published facts are %v", published)
		}
		// What cannot be gathered leaves the facts as they are.
		n.outside.setFacts(func() model.Facts { panic("facts") })
		if err := os.Remove(filepath.Join(n.config.FactsDir, "facts.yaml")); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.more", n.manifest("more", "${ Facts.newfact }"))
		n.settle()
		n.has("more", "new")
	})
}

// TestMendedFactFileCountsAtOnce: a manifest is rejected for a missing fact, then the fact file is fixed. The
// agent retries before the interval.
func TestMendedFactFileCountsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.FactsDir = t.TempDir()
		path := filepath.Join(n.config.FactsDir, "facts.yaml")
		n.outside.setFacts(func() model.Facts {
			if text, err := os.ReadFile(path); err == nil && string(text) == "newfact: new\n" {
				return model.Facts{"newfact": "new"}
			}
			return model.Facts{}
		})
		n.start()
		n.bucket.put("group.all.motd", n.manifest("motd", "${ Facts.newfact }"))
		n.after(30 * time.Second)
		n.lacks("motd")
		if err := os.WriteFile(path, []byte("newfact: new\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		n.after(8 * time.Second)
		n.has("motd", "new")
	})
}

// TestProgramsAmongFactFilesAreToldOnce: other errors are reported each time.
func TestProgramsAmongFactFilesAreToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.outside.factErrors = []error{fmt.Errorf("custom: programs are %w: role.sh", facts.ErrIgnored), errors.New("cpu: unknown")}
		n.start()
		n.after(time.Hour)
		text := n.log.String()
		if got := strings.Count(text, `level=WARN msg="facts incomplete" error="custom: programs are not read`); got != 1 {
			t.Errorf("it was told %d times", got)
		}
		if got := strings.Count(text, `level=WARN msg="facts incomplete" error="cpu`); got < 10 {
			t.Errorf("another error was told %d times", got)
		}
	})
}

func TestWhenFollowsTheFacts(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.motd", n.assignment("when: lookup('facts.role') == 'db'", n.manifest("motd", "db")))
		n.settle()
		n.lacks("motd")
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "db"} })
		n.after(6 * time.Minute)
		n.has("motd", "db")
	})
}

func TestDriftOfAnAssignment(t *testing.T) {
	for drift, want := range map[string][]string{
		"report": {"transaction noop file#motd", "run noop group.all.motd schedule"},
		"ignore": {"run stable group.all.motd schedule"},
		"repair": {"transaction changed file#motd", "run changed group.all.motd schedule"},
	} {
		t.Run(drift, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.bucket.put("group.all.motd", n.assignment("drift: "+drift, n.manifest("motd", "hello")))
				n.settle()
				n.has("motd", "hello")
				n.take()
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.after(6 * time.Minute)
				n.tells(want...)
				if drift == "repair" {
					n.has("motd", "hello")
				} else {
					n.lacks("motd")
				}
			})
		})
	}
}

func TestIntervalOfAssignmentAndPoll(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.Interval = model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.a", n.assignment("interval: 10m", n.manifest("a", "x")))
		n.bucket.put("group.all.b", strings.Replace(n.manifest("b", "x"), `mode: "0644"`, `mode: "0644", poll: 5m`, 1))
		n.put("group.all.c", "c", "x")
		n.take()
		n.after(2 * time.Hour)
		runs := map[string]int{}
		for _, r := range n.take() {
			runs[r.Manifest]++
		}
		if runs["group.all.a"] < 10 || runs["group.all.a"] > 14 || runs["group.all.b"] < 20 || runs["group.all.b"] > 28 || runs["group.all.c"] < 1 || runs["group.all.c"] > 2 {
			t.Errorf("runs are %v", runs)
		}
	})
}

func bundleOf(t *testing.T, files map[string]string) ([]byte, string) {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	for name, content := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())

	return b.Bytes(), "sha256-" + hex.EncodeToString(sum[:])
}

func TestBundle(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		user, group := hosttest.Owner(t)
		text := "muster:\n  resources:\n    - file:\n        - " + n.path("motd") + ": {source: files/motd, owner: \"" + user + "\", group: \"" + group + "\", mode: \"0644\"}\n"
		data, digest := bundleOf(t, map[string]string{"manifest.yaml": text, "files/motd": "from a bundle"})
		n.start()
		n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: "+digest+"\n")
		n.settle()
		n.lacks("motd")
		n.outside.setBundle(digest, data)
		n.after(time.Hour)
		n.has("motd", "from a bundle")
		n.take()

		// It is on disk: neither the source nor the bucket is needed for it.
		n.stop()
		clear(n.outside.bundles)
		bucket.sync = model.Sync{}
		clear(bucket.entries)
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.after(time.Minute)
		n.has("motd", "from a bundle")

		other, otherDigest := bundleOf(t, map[string]string{"readme": "no manifest"})
		n.outside.setBundle(otherDigest, other)
		n.take()
		n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: "+otherDigest+"\n")
		if run := n.lastRun(); !run.Refused || !strings.Contains(run.Errors[0], "manifest.yaml") {
			t.Errorf("the run is %+v", run)
		}

		n.outside.setBundle(otherDigest, data)
		n.bucket.put("group.all.other", "protocol: io.muster.v1.assignment\nbundle: sha256-"+strings.Repeat("0", 64)+"\n")
		n.outside.setBundle("sha256-"+strings.Repeat("0", 64), data)
		n.after(time.Minute)
		if run := n.lastRun(); run.Refused || !strings.Contains(strings.Join(run.Errors, ""), "the content has "+digest) {
			t.Errorf("the run is %+v", run)
		}
	})
}

// TestBundleThatWasDamagedIsFetchedAgain: a cleanup of the state directory must not make a manifest fail
// until the next push.
func TestBundleThatWasDamagedIsFetchedAgain(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"a file is gone":  func(dir string) error { return os.Remove(dir + "/files/motd") },
		"all is gone":     os.RemoveAll,
		"a file is other": func(dir string) error { return os.WriteFile(dir+"/files/motd", []byte("x"), 0o600) },
		"a file is other, with the time it had": func(dir string) error {
			info, err := os.Stat(dir + "/files/motd")
			if err == nil {
				err = os.WriteFile(dir+"/files/motd", []byte("x"), 0o600)
			}
			if err == nil {
				err = os.Chtimes(dir+"/files/motd", info.ModTime(), info.ModTime())
			}
			return err
		},
		"a directory is a link": func(dir string) error {
			return errors.Join(os.Rename(dir+"/files", dir+"/others"), os.Symlink("others", dir+"/files"), os.Remove(dir+"/others/motd"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				user, group := hosttest.Owner(t)
				text := "muster:\n  resources:\n    - file:\n        - " + n.path("motd") + ": {source: files/motd, owner: \"" + user + "\", group: \"" + group + "\", mode: \"0644\"}\n"
				data, digest := bundleOf(t, map[string]string{"manifest.yaml": text, "files/motd": "from a bundle"})
				n.outside.setBundle(digest, data)
				n.start()
				n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: "+digest+"\n")
				n.settle()
				n.has("motd", "from a bundle")
				n.stop()
				if err := damage(n.state + "/bundles/" + digest); err != nil {
					t.Fatal(err)
				}
				clear(n.outside.bundles)
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.start()
				n.after(time.Minute)
				n.outside.setBundle(digest, data)
				n.agent.Connected()
				n.after(6 * time.Minute)
				n.has("motd", "from a bundle")
				// Also while the agent runs.
				if err := damage(n.state + "/bundles/" + digest); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(n.path("motd")); err != nil {
					t.Fatal(err)
				}
				n.after(6 * time.Minute)
				n.has("motd", "from a bundle")
				if late := n.agent.State().Manifests["group.all.motd"].Late; late != "" {
					t.Errorf("it is late: %s", late)
				}
			})
		})
	}
}

// assignBundle assigns a bundle with a manifest and its files, and returns its unpacked directory.
func (n *node) assignBundle(more string, names ...string) (dir string) {
	n.t.Helper()
	user, group := hosttest.Owner(n.t)
	text := "muster:\n  resources:\n" + more + "    - file:\n"
	files := map[string]string{}
	for _, name := range names {
		text += "        - " + n.path(name) + ": {source: files/" + name + ", owner: \"" + user + "\", group: \"" + group + "\", mode: \"0644\"}\n"
		files["files/"+name] = "from a bundle"
	}
	files["manifest.yaml"] = text
	data, digest := bundleOf(n.t, files)
	n.outside.setBundle(digest, data)
	n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: "+digest+"\n")

	return n.state + "/bundles/" + digest
}

// A run waits for a bundle that is fetched again, for a limited time. Without its files it would fail or skip
// work.
func TestRunWaitsForADamagedBundle(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		dir := n.assignBundle("", "motd", "issue")
		n.settle()
		n.take()
		damage := func() {
			if err := errors.Join(os.Remove(dir+"/files/motd"), os.Remove(n.path("motd")), os.Remove(n.path("issue"))); err != nil {
				t.Fatal(err)
			}
		}
		damage()
		n.outside.setBundleTakes(30 * time.Second)
		n.after(7 * time.Minute)
		n.has("motd", "from a bundle")
		n.has("issue", "from a bundle")
		for _, r := range n.take() {
			if r.Outcome == model.OutcomeFailed || r.Outcome == model.OutcomeNotRun {
				t.Errorf("reported %s", r.Data)
			}
		}
		// What does not come holds nothing up.
		n.outside.setBundleTakes(time.Hour)
		damage()
		n.after(5 * time.Minute)
		if late := n.agent.State().Manifests["group.all.motd"].Late; !strings.Contains(late, "being downloaded") {
			t.Errorf("late is %q", late)
		}
		n.after(5 * time.Minute)
		n.has("issue", "from a bundle")
		n.lacks("motd")
		n.after(time.Hour)
		n.has("motd", "from a bundle")
		if late := n.agent.State().Manifests["group.all.motd"].Late; late != "" {
			t.Errorf("late is %q", late)
		}
	})
}

// TestRunOfADamagedBundleWhoseDownloadsFail: the manifest runs with the damaged bundle after a slow
// download fails, and the agent downloads no faster than the runs.
func TestRunOfADamagedBundleWhoseDownloadsFail(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		dir := n.assignBundle("", "motd", "issue")
		n.settle()
		if err := errors.Join(os.Remove(dir+"/files/motd"), os.Remove(n.path("motd")), os.Remove(n.path("issue"))); err != nil {
			t.Fatal(err)
		}
		clear(n.outside.bundles)
		n.outside.setBundleTakes(10 * time.Second)
		n.after(10 * time.Minute)
		n.has("issue", "from a bundle")
		n.lacks("motd")
	})
}

// TestOneRunWaitsForADamagedBundle: the agent ends after the run that waits for the download.
func TestOneRunWaitsForADamagedBundle(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		damage := "muster:\n  resources:\n    - exec:\n        - damage: {provider: shell, command: \"rm -rf " + n.state + "/bundles/*/files; echo >>" + n.path("runs") + "\", creates: " + n.path("runs") + "}\n"
		n.bucket.put("group.all.damage", "protocol: io.muster.v1.assignment\nmanifest: |\n  "+strings.ReplaceAll(damage, "\n", "\n  ")+"\n")
		n.assignBundle("", "motd")
		n.outside.setBundleTakes(time.Second)
		o := n.options()
		o.Goal, o.Away = status.Goal{Once: true}, func() string { return "" }
		a, err := agent.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Run(t.Context(), t.Context()); err != nil {
			t.Error(err)
		}
		n.has("motd", "from a bundle")
	})
}

// Damage that a failed run shows is repaired at once, and again no faster than other
// retries.
func TestBundleThatIsDamagedDuringARun(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		n.config.Interval = model.Duration(24 * time.Hour)
		n.start()
		damage := "    - exec:\n        - damage: {provider: shell, command: \"test -e " + n.path("done") + " || rm -rf " + n.state + "/bundles/*/files; echo >>" + n.path("runs") + "\"}\n"
		n.assignBundle(damage, "motd")
		n.after(time.Hour)
		n.lacks("motd")
		runs, err := os.ReadFile(n.path("runs"))
		if err != nil || len(runs) < 5 || len(runs) > 25 {
			t.Errorf("%d runs in an hour, %v", len(runs), err)
		}
		if err := os.WriteFile(n.path("done"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		n.after(15 * time.Minute)
		n.has("motd", "from a bundle")
	})
}

// Leftovers of a killed agent are removed at the next start, also without assignments and with the same
// process id, as in a container.
func TestLeftoversOfBundles(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		left := []string{n.state + "/bundles/sha256-" + strings.Repeat("0", 64) + "/files", n.state + "/tmp/" + strconv.Itoa(os.Getpid()) + "-bundle-1/tree"}
		for _, dir := range left {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		n.start()
		n.settle()
		for _, dir := range left {
			if _, err := os.Stat(filepath.Dir(dir)); err == nil {
				t.Errorf("%s is there", dir)
			}
		}
	})
}

func TestReasonOfAMissingBundleIsShort(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: sha256-"+strings.Repeat("0123456789abcdef", 4)+"\n")
		n.settle()
		want := "fetch bundle sha256-0123456789ab: read $O.MUSTER_BUNDLES.M.… of OBJ_MUSTER_BUNDLES: NATS is away"
		if late := n.agent.State().Manifests["group.all.motd"].Late; late != want {
			t.Errorf("late is %q, want %q", late, want)
		}
	})
}

// The wait before another try begins when the last one has ended.
func TestRetriesOfSlowBundlesWait(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.outside.bundleTakes = 10 * time.Minute
		n.start()
		n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: sha256-"+strings.Repeat("0123456789abcdef", 4)+"\n")
		n.after(time.Hour)
		if log := n.log.String(); !strings.Contains(log, "will retry") || strings.Contains(log, "retry=-") {
			t.Errorf("the log has %s", log)
		}
	})
}

// During the fetch of a bundle, other changes and repairs continue, and the last good version of its key
// stays active.
func TestASlowBundleHoldsUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		data, digest := bundleOf(t, map[string]string{"manifest.yaml": n.manifest("app", "of the bundle")})
		n.outside.setBundle(digest, data)
		n.outside.bundleTakes = time.Hour
		n.start()
		n.put("group.all.app", "app", "before")
		n.put("group.all.motd", "motd", "one")
		n.take()
		assigned := "protocol: io.muster.v1.assignment\nbundle: " + digest + "\n"
		n.bucket.put("group.all.app", assigned)
		n.after(time.Minute)
		if late := n.agent.State().Manifests["group.all.app"].Late; !strings.Contains(late, "being downloaded: "+digest[:19]) {
			t.Errorf("late is %q", late)
		}
		n.put("group.all.motd", "motd", "two")
		n.has("motd", "two")
		for _, name := range []string{"app", "motd"} {
			if err := os.Remove(n.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		n.after(6 * time.Minute)
		n.has("app", "before")
		n.has("motd", "two")
		for _, r := range n.take() {
			if r.Outcome == model.OutcomeFailed || r.Outcome == model.OutcomeRefused {
				t.Errorf("reported %+v", r)
			}
		}
		n.after(time.Hour)
		n.has("app", "of the bundle")
		if late := n.agent.State().Manifests["group.all.app"].Late; late != "" {
			t.Errorf("late is %q", late)
		}

		// A fetch stops if its bundle is no longer assigned, and at the end of the agent.
		_, other := bundleOf(t, map[string]string{"manifest.yaml": n.manifest("app", "never")})
		n.bucket.put("group.all.app", strings.ReplaceAll(assigned, digest, other))
		n.after(time.Minute)
		n.bucket.put("group.all.app", assigned)
		n.after(time.Minute)
		n.put("group.all.motd", "motd", "three")
		left, err := filepath.Glob(n.state + "/tmp/*")
		if err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
		n.bucket.put("group.all.app", strings.ReplaceAll(assigned, digest, other))
		n.after(time.Minute)
		began := time.Now()
		n.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the agent ended after %s", took)
		}
		if left, err = filepath.Glob(n.state + "/tmp/*"); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
}

func TestBundlesThatAreNotUsedAreRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		data, digest := bundleOf(t, map[string]string{"manifest.yaml": n.manifest("motd", "x")})
		n.outside.setBundle(digest, data)
		n.start()
		n.bucket.put("group.all.motd", "protocol: io.muster.v1.assignment\nbundle: "+digest+"\n")
		n.settle()
		n.has("motd", "x")
		if _, err := os.Stat(n.state + "/bundles/" + digest); err != nil {
			t.Fatal(err)
		}
		n.put("group.all.motd", "motd", "y")
		if _, err := os.Stat(n.state + "/bundles/" + digest); err == nil {
			t.Error("the bundle is still there")
		}
	})
}

// TestBundleThatARunUsesIsRemovedAfterIt, not at the next change of the bucket.
func TestBundleThatARunUsesIsRemovedAfterIt(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		data, digest := bundleOf(t, map[string]string{"manifest.yaml": s.manifest("m", "wait")})
		n.outside.setBundle(digest, data)
		n.start()
		n.bucket.put("group.all.slow", "protocol: io.muster.v1.assignment\nbundle: "+digest+"\n")
		<-s.begun
		n.bucket.remove("group.all.slow")
		n.settle()
		if _, err := os.Stat(n.state + "/bundles/" + digest); err != nil {
			t.Errorf("while a run uses it: %v", err)
		}
		close(s.release)
		n.settle()
		if _, err := os.Stat(n.state + "/bundles/" + digest); err == nil {
			t.Error("the bundle is still there")
		}
	})
}

func TestUndeliverableReportDoesNotHoldUpOthers(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.refuse = func(r model.Report) bool { return r.Kind == model.KindTransaction }
		n.start()
		n.put("group.all.motd", "motd", "x")
		n.tells("node dropped", "run changed group.all.motd manifest")
	})
}
