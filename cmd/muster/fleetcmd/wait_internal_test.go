package fleetcmd

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// remarks are what people read while they wait.
type remarks chan string

func (r remarks) Write(b []byte) (int, error) {
	r <- string(b)

	return len(b), nil
}

// duringOutage calls f while NATS is down, and starts NATS after f has reported it.
func duringOutage(t *testing.T, srv *natstest.Server, said remarks, f func() error) error {
	t.Helper()
	srv.Stop()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	for {
		select {
		case err := <-ended:
			t.Fatalf("it ended during the outage: %v", err)
		case text := <-said:
			if !strings.Contains(text, "NATS does not answer, still waiting") {
				continue
			}
			srv.Start(t)
			return <-ended
		}
	}
}

func newWait(said io.Writer) *Wait {
	p := print.Printer{Out: io.Discard, Err: said}

	return &Wait{Env: &cli.Env{Print: p}, Goal: assign.Goal{Name: "motd"}, Timeout: kvtest.Deadline, line: p.Progress()}
}

// TestWaitBeginsInAnOutage: the assignments cannot be read at first.
func TestWaitBeginsInAnOutage(t *testing.T) {
	t.Parallel()
	srv, kv := kvtest.New(t)
	store := &Store{Assignments: kvstore.NewAssignments(kv.Store), KV: kv.Store}
	if _, err := store.Put(t.Context(), "group.web.motd", []byte("muster: {}")); err != nil {
		t.Fatal(err)
	}
	said := make(remarks, 100)
	w := newWait(said)
	err := duringOutage(t, srv, said, func() error {
		_, err := w.Run(t.Context(), store)
		return err
	})
	if err == nil || !strings.HasPrefix(err.Error(), "no known node matches: motd") {
		t.Error(err)
	}
}

// TestWaitExplainsAfterAnOutage: why an assignment is skipped cannot be read at first.
func TestWaitExplainsAfterAnOutage(t *testing.T) {
	t.Parallel()
	srv, kv := kvtest.New(t)
	store := &Store{Assignments: kvstore.NewAssignments(kv.Store), KV: kv.Store}
	value, err := model.EncodeAssignment(model.Assignment{Protocol: model.ProtocolAssignment, Name: "motd", Manifest: "muster: {}", When: "false"})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := store.Put(t.Context(), "group.web.motd", value)
	if err != nil {
		t.Fatal(err)
	}
	r := fleet.Rollout{Entries: []model.Entry{{Key: "group.web.motd", Revision: revision}}}
	node := model.Node{NodeState: model.NodeState{Node: "web01", Groups: []string{"web"}, Manifests: map[string]model.ManifestState{"group.web.motd": {Seen: revision}}}}
	statuses := r.Statuses([]model.Node{node})
	said := make(remarks, 100)
	away := newWait(said)
	err = duringOutage(t, srv, said, func() error {
		return assign.Retry(t.Context(), func(err error) bool { away.sayOutage(err); return kvstore.IsOutage(err) }, func() error { return fleet.ExplainSkipped(t.Context(), store.Get, statuses) })
	})
	if err != nil || len(statuses) != 1 || !strings.HasPrefix(statuses[0].Reason, "skipped: its condition is false: ") {
		t.Errorf("%+v %v", statuses, err)
	}
}

// TestNoOutageIsWaitedForLongerThanAsked: after the timeout the error names the outage.
func TestNoOutageIsWaitedForLongerThanAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := assign.Retry(ctx, kvstore.IsOutage, func() error {
		calls++
		cancel()
		return context.DeadlineExceeded
	})
	if err != context.DeadlineExceeded || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
