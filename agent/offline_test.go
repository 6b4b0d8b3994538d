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

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestNATSAwayAtStart(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.stop()
		n.take()
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		bucket.sync = model.Sync{}
		kept := bucket.entries
		bucket.entries = map[string]model.Entry{}
		n.stream.setAway(true)

		n.start()
		n.lacks("motd") // the bucket may answer in a moment
		n.after(time.Minute)
		n.has("motd", "hello\n")
		n.tells()
		if state := n.agent.State().Manifests["group.all.motd"]; state.Outcome != model.OutcomeChanged || state.Seen != 0 {
			t.Errorf("the state is %+v", state)
		}

		n.stream.setAway(false)
		bucket.change(func() { bucket.entries, bucket.sync = kept, model.Sync{At: time.Now()} })
		n.agent.Connected()
		n.tells("transaction changed file#motd", "run changed group.all.motd schedule")
	})
}

// TestOneRunWaitsForNATS that starts beside it, and not for longer than promised.
func TestOneRunWaitsForNATS(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		bucket := n.injected()
		bucket.sync = model.Sync{Err: errAway}
		for _, comes := range []bool{false, true} {
			o := n.options()
			o.Goal, o.Away = status.Goal{Once: true}, func() string { return "no server answers" }
			a, err := agent.New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			began, ended := time.Now(), make(chan error, 1)
			go func() { ended <- a.Run(t.Context(), t.Context()) }()
			n.after(5 * time.Second)
			if comes {
				manifest := model.Entry{Key: "group.all.motd", Revision: 1, Value: []byte(n.manifest("motd", "hello\n"))}
				bucket.change(func() { bucket.entries[manifest.Key], bucket.sync = manifest, model.Sync{At: time.Now()} })
				n.settle()
				n.has("motd", "hello\n")
			}
			err, took := <-ended, time.Since(began)
			if comes && (err != nil || took > 6*time.Second) || !comes && (!errors.Is(err, status.ErrUnconverged) || !strings.Contains(err.Error(), "no server answers") || took.Round(time.Second) != 10*time.Second) {
				t.Errorf("NATS comes: %t; ended after %s with %v", comes, took, err)
			}
		}
	})
}

// TestPolledIsNoReason: polled files do not make an agent exit with an error if all is in its desired state.
func TestPolledIsNoReason(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.watching()
		n.machine.fails(n.path("motd"), watch.ErrLimit)
		bucket := n.injected()
		manifest := model.Entry{Key: "group.all.motd", Revision: 1, Value: []byte(n.manifest("motd", "hello\n"))}
		bucket.change(func() { bucket.entries[manifest.Key], bucket.sync = manifest, model.Sync{At: time.Now()} })
		o := n.options()
		o.Goal, o.Away = status.Goal{Once: true}, func() string { return "" }
		a, err := agent.New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		err = a.Run(t.Context(), t.Context())
		n.has("motd", "hello\n")
		if message := a.State().Message; err != nil || !strings.Contains(message, "is polled") {
			t.Errorf("ended with %v, the message is %q", err, message)
		}
	})
}

// TestStateDirectoryThatIsGone is a notice, until it is back.
func TestStateDirectoryThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		for _, move := range []struct {
			from, to string
			told     bool
		}{{n.state, n.state + ".away", true}, {n.state + ".away", n.state, false}} {
			if err := os.Rename(move.from, move.to); err != nil {
				t.Fatal(err)
			}
			n.after(2 * time.Minute)
			if s := n.agent.State(); strings.Contains(s.Message, "was removed or replaced") != move.told {
				t.Errorf("the message is %q", s.Message)
			}
		}
	})
}

func TestNATSLostInTheMiddle(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.take()
		before, _, _ := n.stream.stored()
		n.stream.setAway(true)
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(16 * time.Minute)
		n.has("motd", "hello\n")
		n.tells()
		if waiting := n.agent.State().Outbox; waiting < 3 || waiting > 4 {
			t.Errorf("%d reports wait", waiting)
		}
		n.stop() // and a restart in between loses nothing
		n.start()
		n.stream.setAway(false)
		n.agent.Connected()
		n.settle()
		got := n.take()
		if len(got) < 6 {
			t.Fatalf("%d reports came", len(got))
		}
		for i := 1; i < len(got); i++ {
			if got[i].Seq != got[i-1].Seq+1 {
				t.Errorf("report %d follows %d", got[i].Seq, got[i-1].Seq)
			}
		}
		if after, _, _ := n.stream.stored(); len(after) == len(before) {
			t.Error("the state was not stored when NATS came back")
		}
		if n.agent.State().Outbox != 0 {
			t.Error("reports are left")
		}
	})
}

// TestKilled kills an agent: its assignments and unpublished reports are on disk.
func TestKilled(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.stream.setAway(true)
		n.put("group.all.motd", "motd", "changed\n")
		n.take()
		killed := filepath.Join(t.TempDir(), "state")
		if err := os.CopyFS(killed, os.DirFS(n.state)); err != nil {
			t.Fatal(err)
		}
		n.stop()
		n.stream.setAway(false)

		n.state, n.config.StateDir = killed, killed
		n.injected().sync = model.Sync{} // NATS is away
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.start()
		n.after(time.Minute)
		n.has("motd", "changed\n")
		n.tells("transaction changed file#motd", "run changed group.all.motd manifest",
			"transaction changed file#motd", "run changed group.all.motd schedule")
	})
}

// TestChangeThatWasNotMadeIsStillAskedFor: a manifest that only reports drift is
// changed nevertheless as long as a change that was asked for has not been made.
func TestChangeThatWasNotMadeIsStillAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		if err := os.MkdirAll(n.path("motd"), 0o755); err != nil {
			t.Fatal(err)
		}
		n.bucket.put("group.all.motd", n.assignment("drift: report", n.manifest("motd", "hello")))
		n.settle()
		if run := n.lastRun(); run.Outcome() != model.OutcomeFailed {
			t.Fatalf("the run is %+v", run)
		}
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.stop()
		n.start()
		n.has("motd", "hello")
		n.take()
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.after(6 * time.Minute)
		n.lacks("motd")
		n.stop()
		n.start()
		n.lacks("motd")
	})
}

func TestStoredAssignmentThatIsDamaged(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.a", "a", "x")
		n.put("group.all.b", "b", "x")
		n.stop()
		for name, content := range map[string]string{
			"group.all.a.json": "{", "group.all.c.json": `{"key": "group.all.d"}`, "notes.txt": "mine",
		} {
			if err := os.WriteFile(filepath.Join(n.state, "assignments", name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b"} {
			if err := os.Remove(n.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		n.injected().sync = model.Sync{} // NATS is away
		n.start()
		n.after(time.Minute)
		n.has("b", "x")
		n.lacks("a")
	})
}

func TestGroupsThatWereLeftWhileStopped(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.web.motd", "motd", "web")
		n.put("group.all.other", "other", "x")
		n.stop()
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.injected().sync = model.Sync{} // NATS is away
		n.config.Groups = []string{"prod"}
		n.start()
		n.after(time.Minute)
		n.lacks("motd")
		if _, still := n.agent.State().Manifests["group.web.motd"]; still {
			t.Error("a manifest of a group that was left is in the state")
		}
	})
}

func TestTwoAgentsInOneStateDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		_, err := agent.New(t.Context(), n.options())
		if !errors.Is(err, reporting.ErrInUse) || !strings.Contains(err.Error(), n.state) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunWaitsForTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		other := host.New(host.Options{StateDir: n.state})
		unlock, err := other.Lock(t.Context(), state.LockOptions{Holder: state.LockHolder{Command: "muster apply"}})
		if err != nil {
			t.Fatal(err)
		}
		n.put("group.all.motd", "motd", "hello")
		n.after(time.Minute)
		n.lacks("motd")
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		n.after(time.Second)
		n.has("motd", "hello")
	})
}

func TestStopWhileWaitingForTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		other := host.New(host.Options{StateDir: n.state})
		unlock, err := other.Lock(t.Context(), state.LockOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.put("group.all.motd", "motd", "hello")
		n.take()
		before := time.Now()
		n.stop()
		if waited := time.Since(before); waited > time.Second {
			t.Errorf("stopped after %s", waited)
		}
		n.tells()
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStateIsToldOnChangeAndAsHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.config.Labels = map[string]string{"rack": "b4"}
		n.start()
		n.put("group.all.motd", "motd", "hello")
		states, _, ttl := n.stream.stored()
		first := states[len(states)-1]
		if first.Node != "web01_example_net" || first.Version != "1.2.3" || first.Labels["rack"] != "b4" || len(first.Groups) != 2 || first.Manifests["group.all.motd"].Outcome != model.OutcomeChanged {
			t.Errorf("the state is %+v", first)
		}
		if ttl != 5*time.Minute {
			t.Errorf("the state is valid for %s", ttl)
		}
		before := len(states)
		n.after(8 * time.Minute)
		states, facts, _ := n.stream.stored()
		if heartbeats := len(states) - before; heartbeats < 7 || heartbeats > 11 {
			t.Errorf("%d states in eight minutes", heartbeats)
		}
		if len(facts) != 1 {
			t.Errorf("facts were stored %d times", len(facts))
		}
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "db"} })
		n.after(6 * time.Minute)
		if _, facts, _ = n.stream.stored(); facts[len(facts)-1]["role"] != "db" {
			t.Errorf("facts are %v", facts)
		}
		n.stop()
		states, _, _ = n.stream.stored()
		if last := states[len(states)-1]; last.Event != model.NodeStopped {
			t.Errorf("the last state is %+v", last)
		}
	})
}

// Facts that the store does not accept are logged once, and hold up nothing.
func TestFactsThatAreTooLargeHoldUpNothing(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.stream.noFacts = fmt.Errorf("%w: facts has 9 bytes, MUSTER_NODES accepts 8", model.ErrTooLarge)
		n.start()
		n.put("group.all.motd", "motd", "hello")
		states, _, _ := n.stream.stored()
		before := len(states)
		n.after(30 * time.Minute)
		states, facts, _ := n.stream.stored()
		if heartbeats := len(states) - before; heartbeats < 25 || heartbeats > 40 || len(facts) != 0 {
			t.Errorf("%d states in half an hour, facts %v", heartbeats, facts)
		}
		if said := strings.Count(n.log.String(), "facts has 9 bytes"); said != 1 || strings.Contains(n.log.String(), "cannot store node state") {
			t.Errorf("it was logged %d times", said)
		}
		n.outside.setFacts(func() model.Facts { return model.Facts{"role": "db"} })
		n.after(6 * time.Minute)
		if said := strings.Count(n.log.String(), "facts has 9 bytes"); said != 2 {
			t.Errorf("other facts: it was logged %d times", said)
		}
	})
}

// TestRunsDoNotHoldUpTheHeartbeat: what runs more often than the heartbeat, and
// changes nothing, must not let the state of the node expire.
func TestRunsDoNotHoldUpTheHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.bucket.put("group.all.motd", n.assignment("interval: 10s", n.manifest("motd", "hello")))
		n.start()
		n.after(20 * time.Second)
		before, _, ttl := n.stream.stored()
		n.after(10 * time.Minute)
		states, _, _ := n.stream.stored()
		if heartbeats := len(states) - len(before); heartbeats < 9 || heartbeats > 13 {
			t.Errorf("%d states in ten minutes", heartbeats)
		}
		for i := 1; i < len(states); i++ {
			if gap := states[i].At.Sub(states[i-1].At); gap > ttl {
				t.Errorf("%s passed between two states, which are valid for %s", gap, ttl)
			}
		}
	})
}

// TestOutageDoesNotDelayWhatFollows: after an outage that made the waits long,
// the connection ends them, also when the stream needs a moment more, and also
// when what hands reports over panicked.
func TestOutageDoesNotDelayWhatFollows(t *testing.T) {
	for name, fail := range map[string]func(n *node, failing bool){
		"away": func(n *node, failing bool) { n.stream.setAway(failing) },
		"panics": func(n *node, failing bool) {
			n.stream.mu.Lock()
			defer n.stream.mu.Unlock()
			n.stream.refuse = nil
			if failing {
				n.stream.refuse = func(model.Report) bool { panic("publisher") }
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.take()
				fail(n, true)
				n.put("group.all.motd", "motd", "hello\n")
				n.after(time.Hour)
				before, _, _ := n.stream.stored()
				n.agent.Connected()
				n.after(time.Second)
				fail(n, false)
				n.after(5 * time.Second)
				if got := len(n.take()); got < 2 {
					t.Errorf("%d reports came", got)
				}
				if after, _, _ := n.stream.stored(); len(after) == len(before) {
					t.Error("the state was not stored")
				}
			})
		})
	}
}

func TestOutageIsLoggedWhenItBeginsAndWhenItIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.stream.setAway(true)
		n.put("group.all.motd", "motd", "hello\n")
		n.after(30 * time.Minute)
		n.stream.setAway(false)
		n.agent.Connected()
		n.settle()
		n.stop()
		log := n.log.String()
		begins, over := "level=WARN msg=\"cannot publish reports", "level=INFO msg=\"publishing reports again"
		if strings.Count(log, begins) != 1 || strings.Count(log, over) != 1 || strings.Index(log, begins) > strings.Index(log, over) || !strings.Contains(log, errAway.Error()) {
			t.Errorf("logged %d times that it began, %d that it is over", strings.Count(log, begins), strings.Count(log, over))
		}
	})
}

// wiped forgets all that was stored.
func (s *stream) wiped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states, s.facts = nil, nil
}

func TestStateAndFactsAreStoredAgainAfterTheStoreLostThem(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.stream.wiped()
		n.agent.Connected()
		n.settle()
		if states, facts, _ := n.stream.stored(); len(states) != 1 || len(facts) != 1 || facts[0]["role"] != "web" {
			t.Errorf("on the connection %d states and the facts %v were stored", len(states), facts)
		}
		n.stream.wiped()
		n.after(12 * time.Minute)
		if _, facts, _ := n.stream.stored(); len(facts) != 1 {
			t.Errorf("without a new connection facts were stored %d times", len(facts))
		}
	})
}

func TestReportsOfStartAndStop(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.stop()
		var got []string
		for _, r := range n.take() {
			got = append(got, r.Kind+" "+string(r.Outcome)+" "+r.Type)
		}
		if strings.Join(got, ", ") != "node started io.muster.v1.node, node stopped io.muster.v1.node" {
			t.Errorf("reported %q", got)
		}
	})
}

func TestUnusableStateDirectory(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		if err := os.WriteFile(n.state, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := agent.New(t.Context(), n.options())
		if !errors.Is(err, files.ErrNotDirectory) || !strings.Contains(err.Error(), n.state) {
			t.Errorf("got %v", err)
		}
	})
}

// TestStateSaysThatReportsAreHandedOver: the state after a run does not claim for a heartbeat that its
// reports wait.
func TestStateSaysThatReportsAreHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "x")
		states, _, _ := n.stream.stored()
		if last := states[len(states)-1]; last.Outbox != 0 || last.Manifests["group.all.motd"].Outcome != model.OutcomeChanged {
			t.Errorf("the state that is stored is %+v", last)
		}
	})
}

// TestAnotherAgentOfTheSameID: it is detected by its stored state, reported once, and forgotten when it
// becomes silent.
func TestAnotherAgentOfTheSameID(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		other := model.NodeState{Node: n.config.Node, Host: "other.example.com", Started: time.Now().Add(-time.Hour)}
		for range 5 {
			if err := n.stream.PutState(t.Context(), other, time.Minute); err != nil {
				t.Fatal(err)
			}
			n.after(2 * time.Minute)
		}
		n.tells("node duplicate")
		states, _, _ := n.stream.stored()
		if last := states[len(states)-1]; !strings.Contains(last.Message, "another agent runs as node "+n.config.Node+" on other.example.com, started ") || last.Host == "" {
			t.Errorf("the state that is stored is %+v", last)
		}
		n.after(10 * time.Minute)
		if message := n.agent.State().Message; message != "" {
			t.Errorf("the message stays: %s", message)
		}
	})
}

// TestAnotherAgentBesideFrequentChanges: a node whose state changes between all heartbeats also detects
// another agent.
func TestAnotherAgentBesideFrequentChanges(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		other := model.NodeState{Node: n.config.Node, Started: time.Now().Add(-time.Hour)}
		for i := range 30 {
			if err := n.stream.PutState(t.Context(), other, time.Minute); err != nil {
				t.Fatal(err)
			}
			n.put("group.all.motd", "motd", fmt.Sprint(i))
			n.after(10 * time.Second)
		}
		if !slices.ContainsFunc(n.take(), func(r model.Report) bool { return strings.Contains(string(r.Data), "another agent runs") }) {
			t.Error("the other agent is not seen")
		}
	})
}

// TestStopBesideAnotherAgent: the node does not count as stopped when one of two agents stops.
func TestStopBesideAnotherAgent(t *testing.T) {
	for name, mine := range map[string]bool{"the state of the other is stored": false, "its own state is stored": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				other := model.NodeState{Node: n.config.Node, Started: time.Now().Add(-time.Hour)}
				for range 2 {
					if err := n.stream.PutState(t.Context(), other, time.Minute); err != nil {
						t.Fatal(err)
					}
					if mine {
						n.after(90 * time.Second)
					}
				}
				n.stop()
				if states, _, _ := n.stream.stored(); states[len(states)-1].Event == model.NodeStopped {
					t.Error("the node is shown as stopped")
				}
			})
		})
	}
}

// TestAnotherAgentThatWasStopped: it is forgotten when it reports its stop.
func TestAnotherAgentThatWasStopped(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		other := model.NodeState{Node: n.config.Node, Started: time.Now().Add(-time.Hour)}
		tell := func(event model.NodeEvent) string {
			other.Event = event
			if err := n.stream.PutState(t.Context(), other, time.Minute); err != nil {
				t.Fatal(err)
			}
			n.after(90 * time.Second)
			return n.agent.State().Message
		}
		if message := tell(""); message == "" {
			t.Error("it was not seen")
		}
		if message := tell(model.NodeStopped); message != "" {
			t.Errorf("the message stays: %s", message)
		}
	})
}

// TestStateDirectoryOfAnotherFormat is refused untouched.
func TestStateDirectoryOfAnotherFormat(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "hello\n")
		n.stop()
		format := filepath.Join(n.state, "format")
		if text, err := os.ReadFile(format); err != nil || string(text) != "1\n" {
			t.Errorf("the format is %q, %v", text, err)
		}
		if err := os.WriteFile(format, []byte("2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := hosttest.Snapshot(t, n.state)
		_, err := agent.New(t.Context(), n.options())
		if !errors.Is(err, state.ErrFormat) || !strings.Contains(err.Error(), "--state-dir") {
			t.Errorf("got %v", err)
		}
		if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, n.state)); len(diff) > 0 {
			t.Errorf("it was changed: %v", diff)
		}
	})
}

// TestOutboxOfAnotherFormatLeavesTheStateAlone, so the other version of muster can continue.
func TestOutboxOfAnotherFormatLeavesTheStateAlone(t *testing.T) {
	n := newNode(t)
	n.injected()
	if err := os.MkdirAll(n.state+"/outbox", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.state+"/outbox/00000000000000000001.v9.log", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.New(t.Context(), n.options()); !errors.Is(err, reporting.ErrFormat) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(n.state + "/format"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the format of the state directory was written (%v)", err)
	}
}
