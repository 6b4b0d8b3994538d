package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestTooManyRequestsAreForgotten(t *testing.T) {
	s, err := openStore(hosttest.New(t), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range maxKnown + 2 {
		s.known[fmt.Sprint(i)] = start.Add(time.Duration(i))
	}
	s.open["0"] = &request{}
	s.prune(start)
	if len(s.known) != maxKnown-maxKnown/10+1 {
		t.Errorf("%d are known", len(s.known))
	}
	for name, want := range map[string]bool{"0": true, "1": false, fmt.Sprint(maxKnown): true} {
		if _, known := s.known[name]; known != want {
			t.Errorf("request %s is known: %v", name, known)
		}
	}
}

// TestRunsDisplaceNoCommands: a flood of run requests does not displace the record of an executed
// command, also after a restart: the stream delivers the command again, and it must not be executed
// again.
func TestRunsDisplaceNoCommands(t *testing.T) {
	t.Parallel()
	h, dir, log := hosttest.New(t), t.TempDir(), slog.New(slog.DiscardHandler)
	s, err := openStore(h, dir, log)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	add := func(id string, run bool, at time.Time) {
		t.Helper()
		q := &request{ID: id, Run: run, At: at, Response: model.EnsureResponse{Phase: model.EnsureDone}}
		if isNew, err := s.accept(t.Context(), q, func(model.EnsureResponse) {}); !isNew || err != nil {
			t.Fatalf("%s: %v, %v", id, isNew, err)
		}
	}
	add("command", false, start)
	for i := range maxKnownRuns + 300 {
		add(fmt.Sprint(i), true, start.Add(time.Duration(i+1)))
	}
	for range 2 {
		command := s.knows(&request{ID: "command"})
		knows := func(run int) bool { return s.knows(&request{ID: fmt.Sprint(run), Run: true}) }
		if !command || knows(0) || !knows(maxKnownRuns+299) || s.runs > maxKnownRuns || len(s.known) != s.runs+1 {
			t.Errorf("%d are known, %d of them runs; the command %v", len(s.known), s.runs, command)
		}
		if s, err = openStore(h, dir, log); err != nil {
			t.Fatal(err)
		}
		s.unfinished()
	}
}

// TestRunsHaveIdsOfTheirOwn: a run request does not block the id of an ensure request, which can still
// be accepted and cancelled. The same holds after a restart and for records of an older version.
func TestRunsHaveIdsOfTheirOwn(t *testing.T) {
	t.Parallel()
	opened := func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	}
	ask := func(send func(context.Context, *model.Sender, []byte, func(model.EnsureResponse)), data []byte) (first model.EnsureResponse) {
		send(t.Context(), nil, data, func(r model.EnsureResponse) {
			if first.Node == "" {
				first = r
			}
		})
		return first
	}
	ensure := encode(model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, ID: "r1", Type: "exec", Properties: []byte("{}")})
	run := encode(model.RunRequest{Protocol: model.ProtocolRunRequest, ID: "r1", Expires: time.Now().Add(time.Hour)})
	s, reported := accepting(t, opened)
	if r := ask(s.Run, run); r.Phase != model.EnsureAcknowledged {
		t.Errorf("the run: %+v", r)
	}
	if r := ask(s.Ensure, ensure); r.Phase != model.EnsureAcknowledged || len(*reported) > 0 {
		t.Errorf("a request with the id of a run: %+v", r)
	}
	if r := ask(s.Ensure, cancelOf("r1")); r.Phase != model.EnsureCancelled || r.Protocol != model.ProtocolEnsureResponse || s.NextRun(t.Context()) == nil {
		t.Errorf("cancelled was %+v", r)
	}
	s, _ = accepting(t, opened)
	ask(s.Run, run)
	if r := ask(s.Ensure, cancelOf("r1")); r.Phase != model.EnsureCancelled || r.Protocol != model.ProtocolRunResponse {
		t.Errorf("cancelled was %+v", r)
	}
	if r := ask(s.Ensure, ensure); r.Phase != model.EnsureCancelled || r.Protocol != model.ProtocolEnsureResponse {
		t.Errorf("a request that was cancelled before it came: %+v", r)
	}
	s, _ = accepting(t, opened)
	ask(s.Run, run)
	own := (&request{ID: "r1", Run: true}).name()
	again, err := openStore(hosttest.New(t), s.store.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if q := again.unfinished(); len(q) != 1 || again.open[own] != q[0] || len(again.known) != 1 || again.runs != 1 {
		t.Errorf("after a restart: %+v, known %v, %d runs", q, again.known, again.runs)
	}
}

// TestWhatMayHaveBeenDoneIsKnown: a request that a restart interrupted names its resource, unless the
// resource is sensitive.
func TestWhatMayHaveBeenDoneIsKnown(t *testing.T) {
	t.Parallel()
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	})
	for id, of := range map[string]*model.Ref{"plain": {Type: "exec", Name: "id"}, "sensitive": nil} {
		q := &request{ID: id, At: time.Now().UTC(), Of: of, Response: model.EnsureResponse{ID: id, Phase: model.EnsureRunning}}
		if _, err := s.store.accept(t.Context(), q, func(model.EnsureResponse) {}); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if s.store, err = openStore(s.o.Host, s.o.Dir, s.o.Log); err != nil {
		t.Fatal(err)
	}
	s.responder.store = s.store
	s.recover(t.Context())
	got := map[string]string{}
	for _, r := range *reported {
		if got[r.ID] = "nothing"; r.State != nil {
			got[r.ID] = r.State.Ref().String() + " " + string(r.State.Outcome())
		}
	}
	if !maps.Equal(got, map[string]string{"plain": "exec#id failed", "sensitive": "nothing"}) {
		t.Errorf("%v", got)
	}
	asked := parse([]byte(`{"protocol": "`+model.ProtocolEnsureRequest+`", "type": "exec", "properties": {"name": "uptime"}}`), false)
	if ref := asked.ref(); asked.err != nil || ref == nil || ref.String() != "exec#uptime" {
		t.Errorf("%v, %v", ref, asked.err)
	}
}

// TestRejectedRunsAreNotReported: a flood of rejected run requests must not displace reports of other
// requests.
func TestRejectedRunsAreNotReported(t *testing.T) {
	t.Parallel()
	unsigned := errors.New("not signed")
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, unsigned
	})
	for i := range 300 {
		var got model.EnsureResponse
		s.Run(t.Context(), nil, encode(model.RunRequest{Protocol: model.ProtocolRunRequest, ID: fmt.Sprint(i), Expires: time.Now().Add(time.Hour)}), func(r model.EnsureResponse) { got = r })
		if got.Phase != model.EnsureFailed || got.ID != fmt.Sprint(i) || got.Error != unsigned.Error() || got.Protocol != model.ProtocolRunResponse {
			t.Fatalf("%+v", got)
		}
	}
	if ended := s.Ended()["rejected"]; len(*reported) > 0 || ended != 300 {
		t.Errorf("%d are reported, %d counted", len(*reported), ended)
	}
}

// TestManyRunsAreBounded: during a long run, a flood of run requests fills neither the memory nor the
// reports of the node. A known request gets its response.
func TestManyRunsAreBounded(t *testing.T) {
	t.Parallel()
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	})
	run := func(i int) (last model.EnsureResponse) {
		text := fmt.Sprintf(`{"protocol":%q,"id":"%d","expires":%q}`, model.ProtocolRunRequest, i, time.Now().Add(time.Hour).Format(time.RFC3339))
		s.Run(t.Context(), nil, []byte(text), func(r model.EnsureResponse) { last = r })
		return last
	}
	for i := range maxOpenRuns {
		if r := run(i); r.Phase != model.EnsureAcknowledged {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	for i := range 10 {
		if r := run(maxOpenRuns + i); r.Phase != model.EnsureFailed || !strings.Contains(r.Error, "too many") || r.ID != fmt.Sprint(maxOpenRuns+i) {
			t.Errorf("one more: %+v", r)
		}
	}
	if r := run(3); r.Phase != model.EnsureAcknowledged {
		t.Errorf("one that waits: %+v", r)
	}
	if len(*reported) > 0 || len(s.store.open) != maxOpenRuns {
		t.Errorf("%d reports, %d kept", len(*reported), len(s.store.open))
	}
	s.NextRun(t.Context()).End(t.Context(), nil, nil)
	if r := run(1000); r.Phase != model.EnsureAcknowledged {
		t.Errorf("once one has ended: %+v", r)
	}
}
