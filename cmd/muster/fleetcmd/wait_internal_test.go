package fleetcmd

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

func statusesOf(counts map[fleet.Status]int) []fleet.RolloutStatus {
	var out []fleet.RolloutStatus
	for range counts[fleet.StatusPaused] {
		out = append(out, fleet.RolloutStatus{Node: fmt.Sprintf("sim-%04d", len(out)), Status: fleet.StatusPending, Paused: &model.Paused{By: "ann"}})
	}
	for _, status := range []fleet.Status{fleet.StatusUpToDate, fleet.StatusFailed, fleet.StatusUnreachable, fleet.StatusPending, fleet.StatusRejected} {
		for range counts[status] {
			out = append(out, fleet.RolloutStatus{Node: fmt.Sprintf("sim-%04d", len(out)), Status: status})
		}
	}

	return out
}

// TestNotUpToDate: who failed, is unreachable or pending is counted, and some of each are named.
func TestNotUpToDate(t *testing.T) {
	t.Parallel()
	all := statusesOf(map[fleet.Status]int{fleet.StatusUpToDate: 287, fleet.StatusFailed: 9, fleet.StatusUnreachable: 3, fleet.StatusPending: 1})
	if n := fleet.TallyOf(all).NotUpToDate(); n != 13 {
		t.Errorf("%d are not up to date", n)
	}
	if got, want := notUpToDate(all), "9 failed (sim-0287, sim-0288, sim-0289, …), 3 unreachable (sim-0296, sim-0297, sim-0298), 1 pending (sim-0299)"; got != want {
		t.Error(got)
	}
}

// TestProgress: the line names the awaited nodes, and reports when only unreachable nodes remain.
func TestProgress(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string]map[fleet.Status]int{
		"motd: 2/2 nodes up to date": {fleet.StatusUpToDate: 2},
		"motd: 1/4 nodes up to date, 1 failed, waiting for 1 pending (sim-0003), 1 unreachable (sim-0002)":                             {fleet.StatusUpToDate: 1, fleet.StatusFailed: 1, fleet.StatusUnreachable: 1, fleet.StatusPending: 1},
		"motd: 1/2 nodes up to date, only unreachable nodes remain: 1 unreachable (sim-0001)":                                          {fleet.StatusUpToDate: 1, fleet.StatusUnreachable: 1},
		"motd: 0/3 nodes up to date, only unreachable or paused nodes remain: 1 unreachable (sim-0002), 2 paused (sim-0000, sim-0001)": {fleet.StatusPaused: 2, fleet.StatusUnreachable: 1},
		"motd: 0/2 nodes up to date, only paused nodes remain: 2 paused (sim-0000, sim-0001)":                                          {fleet.StatusPaused: 2},
	} {
		if got := progress("motd", statusesOf(counts)); got != want {
			t.Error(got)
		}
	}
}

// TestVerdictNamesTheReason: the error names --timeout only if the wait took that long.
func TestVerdictNamesTheReason(t *testing.T) {
	t.Parallel()
	mixed := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusRejected: 1, fleet.StatusUnreachable: 1}
	for name, tc := range map[string]struct {
		counts                map[fleet.Status]int
		leave, timedOut, time bool
		reason                string
	}{
		"rejected and unreachable":            {mixed, true, false, false, "; rejected nodes need another push; unreachable nodes apply it when they reconnect, "},
		"rejected and unreachable, timed out": {mixed, false, true, true, ""},
		"rejected and failed":                 {map[fleet.Status]int{fleet.StatusFailed: 1, fleet.StatusRejected: 1}, true, false, false, "(sim-0001); rejected nodes need another push"},
		"rejected and paused":                 {map[fleet.Status]int{fleet.StatusPaused: 1, fleet.StatusRejected: 1}, true, false, false, "paused nodes apply it when their pause ends"},
		"pending":                             {map[fleet.Status]int{fleet.StatusPending: 1}, true, true, true, "(sim-0000)"},
	} {
		w := Wait{Goal: assign.Goal{Name: "motd"}, Timeout: 5 * time.Minute, LeaveUnreachable: tc.leave, store: &Store{KV: &kvstore.Store{}}}
		err := w.verdict(t.Context(), tc.timedOut, statusesOf(tc.counts))
		if err == nil || strings.Contains(err.Error(), "after 5m0s") != tc.time || !strings.Contains(err.Error(), tc.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNotes: unreachable nodes are reported at once, and again when only they remain, each once.
func TestNotes(t *testing.T) {
	t.Parallel()
	pending := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusUnreachable: 4, fleet.StatusPending: 1}
	only := map[fleet.Status]int{fleet.StatusUpToDate: 1, fleet.StatusFailed: 1, fleet.StatusUnreachable: 1, fleet.StatusRejected: 1}
	const (
		some  = "4 unreachable (sim-0001, sim-0002, sim-0003, …), waiting for all"
		those = "only unreachable nodes remain: 1 unreachable (sim-0002), waiting for at most 5m0s; ctrl-C ends it"
	)
	for name, c := range map[string]struct {
		polls []map[fleet.Status]int
		want  []string
	}{
		"some, then only these": {[]map[fleet.Status]int{pending, pending, only, only}, []string{some, "", those, ""}},
		"only these at once":    {[]map[fleet.Status]int{only, pending, only}, []string{those, "", ""}},
		"only paused ones":      {[]map[fleet.Status]int{{fleet.StatusPaused: 1, fleet.StatusPending: 1}, {fleet.StatusUpToDate: 1, fleet.StatusPaused: 1}}, []string{"1 paused (sim-0000), waiting for all", "only paused nodes remain: 1 paused (sim-0000), waiting for at most 5m0s; ctrl-C ends it"}},
		"none":                  {[]map[fleet.Status]int{{fleet.StatusUpToDate: 1, fleet.StatusPending: 2}}, []string{""}},
		"later":                 {[]map[fleet.Status]int{{fleet.StatusPending: 1}, only}, []string{"", those}},
	} {
		n := Wait{Timeout: 5 * time.Minute}
		for i, counts := range c.polls {
			if got := n.remark(statusesOf(counts)); got != c.want[i] {
				t.Errorf("%s: poll %d: %q, want %q", name, i, got, c.want[i])
			}
		}
	}
	once := Wait{}
	if got := once.remark(statusesOf(only)); got != "" {
		t.Errorf("who does not wait is told %q", got)
	}
}

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
