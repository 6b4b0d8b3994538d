package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

// answers collects the answers to an asker.
type answers struct {
	mu  sync.Mutex
	all []model.EnsureResponse
}

func (a *answers) respond(r model.EnsureResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, r)
}

func (a *answers) phases() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, r := range a.all {
		out = append(out, string(r.Phase))
	}

	return strings.Join(out, " ")
}

func (a *answers) last() model.EnsureResponse {
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.all[len(a.all)-1]
}

// request gives a request for a file.
func (n *node) request(id, name, content, more string) []byte {
	user, group := hosttest.Owner(n.t)

	return fmt.Appendf(nil, `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "id": %q, "type": "file", %s "properties": {"name": %q, "content": %q, "owner": %q, "group": %q, "mode": "0644"}}`,
		id, more, n.path(name), content, user, group)
}

func (n *node) ask(data []byte) *answers {
	a := &answers{}
	n.agent.Requests().Ensure(n.t.Context(), nil, data, a.respond)
	n.settle()

	return a
}

// command hands over a request that waited in the stream.
func (n *node) command(data []byte) {
	n.t.Helper()
	if err := n.agent.Requests().Command(n.t.Context(), nil, "", data); err != nil {
		n.t.Fatal(err)
	}
	n.settle()
}

func TestEnsure(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		a := n.ask(n.request("r1", "motd", "asked", ""))
		n.has("motd", "asked")
		if a.phases() != "acknowledged running done" {
			t.Errorf("answered %s", a.phases())
		}
		last := a.last()
		if last.ID != "r1" || last.Node != "web01_example_net" || last.State == nil || !last.State.Changed || last.State.Cause != model.CauseEnsure || last.State.CorrelationID != "r1" || last.Protocol != model.ProtocolEnsureResponse {
			t.Errorf("the answer is %+v", last)
		}
		reports := n.take()
		if len(reports) != 1 || reports[0].Kind != model.KindEnsure || reports[0].Outcome != "changed" || reports[0].CorrelationID != "r1" {
			t.Fatalf("reported %+v", reports)
		}
		var told model.EnsureResponse
		n.decode(reports[0], &told)
		if told.Phase != model.EnsureDone || told.State.Name != n.path("motd") {
			t.Errorf("the stream has %+v", told)
		}
		if a := n.ask(n.request("r2", "motd", "asked", "")); a.phases() != "acknowledged running done" || a.last().State.Changed || len(a.last().State.Status) == 0 {
			t.Errorf("a stable resource is answered with %+v", a.last())
		}
	})
}

func TestEnsureRepeatedID(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.ask(n.request("r1", "motd", "asked", ""))
		if err := os.Remove(n.path("motd")); err != nil {
			t.Fatal(err)
		}
		n.take()
		again := n.ask(n.request("r1", "motd", "asked", ""))
		n.lacks("motd")
		if again.phases() != "done" || !again.last().State.Changed {
			t.Errorf("answered %s", again.phases())
		}
		n.stop()
		n.start()
		n.take()
		if again := n.ask(n.request("r1", "motd", "asked", "")); again.phases() != "done" {
			t.Errorf("after a restart answered %s", again.phases())
		}
		n.lacks("motd")
		n.tells()
	})
}

func TestEnsureRepeatedWhileItRuns(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		first := n.ask([]byte(waiting))
		second := n.ask([]byte(waiting))
		if first.phases() != "acknowledged running" || second.phases() != "running" {
			t.Errorf("answered %s and %s", first.phases(), second.phases())
		}
		close(s.release)
		n.settle()
		if first.phases() != "acknowledged running done" || second.phases() != "running done" {
			t.Errorf("answered %s and %s", first.phases(), second.phases())
		}
		if len(s.begun) != 1 {
			t.Errorf("it was done %d times", len(s.begun))
		}
	})
}

func TestEnsureIsForgottenAfterADay(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.ask(n.request("r1", "motd", "asked", ""))
		n.stop()
		requests := filepath.Join(n.state, "requests")
		entries, err := os.ReadDir(requests)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d requests are kept, %v", len(entries), err)
		}
		old := time.Now().Add(-25 * time.Hour)
		if err := os.Chtimes(filepath.Join(requests, entries[0].Name()), old, old); err != nil {
			t.Fatal(err)
		}
		n.start()
		if entries, err := os.ReadDir(requests); err != nil || len(entries) != 0 {
			t.Errorf("%d requests are kept, %v", len(entries), err)
		}
	})
}

func TestEnsureThatIsNotExecuted(t *testing.T) {
	for name, c := range map[string]struct {
		request func(n *node) []byte
		phases  string
		error   string
		outcome string
	}{
		"expired":     {func(n *node) []byte { return n.request("r", "motd", "x", `"expires": "1999-01-01T00:00:00Z",`) }, "acknowledged expired", "", "ensure notrun"},
		"no JSON":     {func(*node) []byte { return []byte("{") }, "failed", "request:", ""},
		"no type":     {func(*node) []byte { return []byte(`{"protocol": "io.choria.ccm.v1.resource.ensure.request"}`) }, "failed", "no `type`", ""},
		"unknown key": {func(n *node) []byte { return n.request("r", "motd", "x", `"nop": true,`) }, "failed", "unknown key `nop`", "ensure failed"},
		"cut short":   {func(n *node) []byte { return []byte(`{"id": "r", "type": `) }, "failed", "request:", ""},
		"no mapping":  {func(n *node) []byte { return []byte("[id]") }, "failed", "must be a mapping", ""},
		"wrong types": {func(n *node) []byte { return []byte(`{"type": ["file"], "id": "r"}`) }, "failed", "`type` must be text", "ensure failed"},
		"unknown type": {func(n *node) []byte {
			return []byte(strings.Replace(string(n.request("r", "motd", "x", "")), `"file"`, `"fiel"`, 1))
		}, "acknowledged failed", "unknown resource type `fiel`", "ensure failed"},
		"invalid": {func(n *node) []byte {
			return []byte(strings.Replace(string(n.request("r", "motd", "x", "")), "0644", "9", 1))
		}, "acknowledged failed", "mode", "ensure failed"},
		"require": {func(n *node) []byte {
			return []byte(strings.Replace(string(n.request("r", "motd", "x", "")), `"mode"`, `"require": ["file#/x"], "mode"`, 1))
		}, "acknowledged failed", "file#/x", "ensure failed"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.take()
				a := n.ask(c.request(n))
				n.lacks("motd")
				if a.phases() != c.phases || !strings.Contains(a.last().Error, c.error) {
					t.Errorf("answered %s: %+v", a.phases(), a.last())
				}
				if got := strings.Join(n.told(), ", "); got != c.outcome {
					t.Errorf("reported %q, want %q", got, c.outcome)
				}
			})
		})
	}
}

// TestEnsureThatIsNotTakenIsRecorded: the stream has the answer under the id of the request.
func TestEnsureThatIsNotTakenIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, n *node)
		more    string
		error   string
	}{
		"cannot be parsed": {func(*testing.T, *node) {}, `"nop": true,`, "unknown key `nop`"},
		"cannot be stored": {func(t *testing.T, n *node) {
			requests := filepath.Join(n.state, "requests")
			if err := os.RemoveAll(requests); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(requests, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "", "cannot be stored"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, n *node) {
				n.start()
				n.take()
				c.prepare(t, n)
				a := n.ask(n.request("r1", "motd", "x", c.more))
				n.lacks("motd")
				reports := n.take()
				if len(reports) != 1 || reports[0].Kind != model.KindEnsure || reports[0].CorrelationID != "r1" || reports[0].Outcome != "failed" {
					t.Fatalf("reported %+v", reports)
				}
				var told model.EnsureResponse
				n.decode(reports[0], &told)
				if !reflect.DeepEqual(told, a.last()) || told.ID != "r1" || told.Phase != model.EnsureFailed || !strings.Contains(told.Error, c.error) {
					t.Errorf("the stream has %+v, the asker %+v", told, a.last())
				}
			})
		})
	}
}

// TestCommand: a request that waited for the node is taken once, by the id it
// waited with where it has none, and tried again when it could not be recorded.
func TestCommand(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		requests := filepath.Join(n.state, "requests")
		if err := os.RemoveAll(requests); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(requests, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		command := func(id string, data []byte) error {
			err := n.agent.Requests().Command(t.Context(), nil, id, data)
			n.settle()
			return err
		}
		if err := command("c1", n.request("r1", "motd", "asked", "")); err == nil || !strings.Contains(err.Error(), "cannot be stored") {
			t.Errorf("without a disk: %v", err)
		}
		n.lacks("motd")
		n.tells()
		if err := os.Remove(requests); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(requests, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := errors.Join(command("c1", n.request("r1", "motd", "asked", "")), command("c2", n.request("", "other", "asked", ""))); err != nil {
				t.Error(err)
			}
		}
		n.has("motd", "asked")
		n.tells("ensure changed", "ensure changed")
		// What will never be accepted is reported once.
		for _, id := range []string{"c3", ""} {
			if err := command(id, []byte("{}")); err != nil {
				t.Error(err)
			}
		}
		n.tells("ensure failed")
		if err := command("", n.request("", "third", "asked", "")); err != nil {
			t.Error(err)
		}
		n.lacks("third")
	})
}

// TestEnsureIsNotKept: a request stays on disk only while it may have to be executed; sensitive values are
// never stored.
func TestEnsureIsNotKept(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.ask([]byte(waiting))
		n.ask(n.request("r2", "motd", "hello", ""))
		n.ask(sensitive(n.request("r3", "secret", "hunter2", "")))
		kept := func(content string) (found int) {
			files, err := filepath.Glob(filepath.Join(n.state, "requests", "*.json"))
			if err != nil || len(files) != 3 {
				t.Fatalf("requests are in %q, %v", files, err)
			}
			for _, file := range files {
				if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), content) {
					found++
				}
			}
			return found
		}
		if kept(`"request":`) != 1 || kept("hunter2") != 0 {
			t.Fatal("on disk is not what waits, or what is sensitive")
		}
		close(s.release)
		n.settle()
		n.has("motd", "hello")
		n.has("secret", "hunter2")
		if kept(`"request":`) != 0 {
			t.Error("a request that was executed is still on disk")
		}
	})
}

const waiting = `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "id": "r1", "type": "slow", "properties": {"name": "wait"}}`

// sensitive makes the resource of a request for a file sensitive.
func sensitive(request []byte) []byte {
	return []byte(strings.Replace(string(request), `"mode"`, `"sensitive": true, "mode"`, 1))
}

// TestSensitiveEnsureAcrossARestart: it cannot be executed, is reported, and can be sent again. A request
// that waited in the stream is read again from there.
func TestSensitiveEnsureAcrossARestart(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.ask([]byte(waiting))
		asked, command := sensitive(n.request("r2", "asked", "hunter2", "")), sensitive(n.request("r3", "commanded", "hunter2", ""))
		n.ask(asked)
		n.command(command)
		killed := filepath.Join(t.TempDir(), "state")
		if err := os.CopyFS(killed, os.DirFS(n.state)); err != nil {
			t.Fatal(err)
		}
		close(s.release)
		n.stop()
		n.take()
		n.state, n.config.StateDir = killed, killed
		if err := errors.Join(os.RemoveAll(n.path("asked")), os.RemoveAll(n.path("commanded"))); err != nil {
			t.Fatal(err)
		}

		n.start()
		n.lacks("asked")
		n.lacks("commanded")
		n.tells("ensure failed", "ensure failed") // that which had begun is the other one
		n.command(command)
		n.has("commanded", "hunter2")
		n.ask(asked)
		n.has("asked", "hunter2")
		n.tells("ensure changed", "ensure changed")
	})
}

func TestEnsureNoop(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		a := n.ask(n.request("r1", "motd", "asked", `"noop": true,`))
		n.lacks("motd")
		if a.phases() != "acknowledged running done" || a.last().State.NoopMessage == "" {
			t.Errorf("answered %+v", a.last())
		}
		n.tells("ensure noop")
	})
}

func TestEnsureThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		a := n.ask(n.request("r1", "no/such/directory", "asked", ""))
		if a.phases() != "acknowledged running failed" || len(a.last().State.Errors) == 0 {
			t.Errorf("answered %+v", a.last())
		}
		n.tells("ensure failed")
	})
}

func TestEnsureAcrossARestart(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		// The first is being executed when the agent is killed, the second waits.
		n.ask([]byte(waiting))
		n.ask(n.request("r2", "motd", "asked", ""))
		n.ask(n.request("r3", "late", "asked", `"expires": "2000-01-01T00:10:00Z",`))
		killed := filepath.Join(t.TempDir(), "state")
		if err := os.CopyFS(killed, os.DirFS(n.state)); err != nil {
			t.Fatal(err)
		}
		n.after(11 * time.Minute)
		close(s.release)
		n.stop()
		n.take()
		if err := errors.Join(os.RemoveAll(n.path("motd")), os.RemoveAll(n.path("late"))); err != nil {
			t.Fatal(err)
		}
		clear(s.done)

		n.state, n.config.StateDir = killed, killed
		n.start()
		n.has("motd", "asked")
		n.lacks("late")
		if s.done["wait"] {
			t.Error("what may have been done was done again")
		}
		got := n.told()
		slices.Sort(got)
		if strings.Join(got, ", ") != "ensure changed, ensure failed, ensure notrun" {
			t.Errorf("reported %q", got)
		}
		if a := n.ask([]byte(waiting)); a.phases() != "failed" || !strings.Contains(a.last().Error, "not executed again") {
			t.Errorf("answered %+v", a.last())
		}
	})
}

func TestEnsureWaitsForTheRun(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		s := newSlow(n)
		n.start()
		n.bucket.put("group.all.slow", s.manifest("a", "wait"))
		n.put("group.all.z", "z", "x")
		<-s.begun
		a := n.ask(n.request("r1", "motd", "asked", ""))
		if a.phases() != "acknowledged" {
			t.Errorf("answered %s while a run goes on", a.phases())
		}
		n.take()
		close(s.release)
		n.tells("transaction changed slow#wait", "run changed group.all.slow manifest", "ensure changed", "transaction changed file#z", "run changed group.all.z manifest")
	})
}

func TestStatus(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.put("group.all.motd", "motd", "hello")
		if _, err := n.agent.Requests().Status(t.Context(), []byte(`{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "file", "properties": {"name": "/etc/motd"}}`)); err != nil {
			t.Errorf("a question needs only a name: %v", err)
		}
		state, err := n.agent.Requests().Status(t.Context(), n.request("", "motd", "other", ""))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Protocol, Name, Ensure string }
		if err := json.Unmarshal(state, &got); err != nil {
			t.Fatal(err)
		}
		if got.Protocol != "io.choria.ccm.v1.resource.file.state" || got.Name != n.path("motd") || got.Ensure != "present" {
			t.Errorf("the state is %s", state)
		}
		n.has("motd", "hello")
		for _, bad := range []string{"{", `{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "nope", "properties": {"name": "x"}}`} {
			if _, err := n.agent.Requests().Status(t.Context(), []byte(bad)); err == nil {
				t.Errorf("%s is taken", bad)
			}
		}
	})
}

func TestFacts(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		facts, err := n.agent.Facts(t.Context())
		if err != nil || facts["role"] != "web" {
			t.Errorf("facts are %v, %v", facts, err)
		}
		n.stop()
		n.outside.setFacts(func() model.Facts { panic("no facts") })
		n.start()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.agent.Facts(ctx); err == nil || !strings.Contains(err.Error(), "not gathered yet") {
			t.Errorf("got %v", err)
		}
	})
}

// TestEnsureIDOfAnotherRequest: while the first runs, when it has ended, and after
// a restart. Only the time it expires at may differ.
func TestEnsureIDOfAnotherRequest(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.ask(n.request("r1", "a", "one", ""))
		for range 2 {
			refused := n.ask(n.request("r1", "a", "two", "")).last()
			if refused.Phase != model.EnsureFailed || !strings.Contains(refused.Error, "used for another request") {
				t.Errorf("the answer is %+v", refused)
			}
			if again := n.ask(n.request("r1", "a", "one", `"expires": "2100-01-01T00:00:00Z",`)).last(); again.Phase != model.EnsureDone {
				t.Errorf("the same again is answered with %+v", again)
			}
			n.has("a", "one")
			n.stop()
			n.start()
		}
	})
}
