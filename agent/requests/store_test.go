package requests

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

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

// TestRunsDisplaceNoCommands: who may only have what is assigned run sends any number of such requests. What a
// queued command did stays known, also after a restart: it comes again then, and must not be done again.
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
		if !s.knows("command") || s.knows("0") || !s.knows(fmt.Sprint(maxKnownRuns+299)) || len(s.runs) > maxKnownRuns || len(s.known) != len(s.runs)+1 {
			t.Errorf("%d are known, %d of them runs; the command %v", len(s.known), len(s.runs), s.knows("command"))
		}
		if s, err = openStore(h, dir, log); err != nil {
			t.Fatal(err)
		}
		s.unfinished()
	}
}

// TestManyRunsAreBounded: while one takes long, who sends more fills neither the
// memory nor the reports of the node. One that is known gets its answer.
func TestManyRunsAreBounded(t *testing.T) {
	t.Parallel()
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (Opened, error) {
		return Opened{Request: data}, nil
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
