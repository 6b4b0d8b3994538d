package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestTheServerStoresNothing tests that the dashboard names the server and /healthz while the server stores no states or
// no reports, shows the last known state, and ends that when they are stored again.
func TestTheServerStoresNothing(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.WithMaxStore(64<<20))
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(srv.Connect(t), "") })
	if _, err := store.Apply(t.Context(), provision.Options{ReportBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	state := model.NodeState{Node: "web01"}
	putState := func() error { return store.PutState(t.Context(), state, 20*time.Second) }
	if err := putState(); err != nil {
		t.Fatal(err)
	}
	var full atomic.Bool
	pingable(t, kvtest.Bind(t, srv), "web01", func() model.NodeState {
		answer := model.NodeState{Node: "web01"}
		if full.Load() {
			answer.Unstored = map[string]string{model.UnstoredState: fmt.Sprint("state not stored since then: ", putState()), model.UnstoredReports: "no room"}
		}
		return answer
	})
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	s.complete()
	if problems := s.overview().Progress.Problems; len(problems) > 0 {
		t.Errorf("at first %q", problems)
	}
	server := store.Conn.ConnectedServerName()
	free := kvtest.FillServer(t, store)
	full.Store(true)
	shows(t, s, "the NATS server "+server+" stores no states of nodes since ", "free disk space, check its /healthz, and restart the server", "web01 reports: state not stored since then")
	if page := s.text("/"); !strings.Contains(page, "data-blind") {
		t.Error("the page does not mark the last known state")
	}
	free()
	full.Store(false)
	if err := putState(); err != nil {
		t.Fatal(err)
	}
	showsNothing(t, s)

	state.Outbox = 3
	if err := putState(); err != nil {
		t.Fatal(err)
	}
	shows(t, s, "the NATS server "+server+" stores no reports since ", "(nodes with waiting reports: 1, first web01)", "/healthz")
	report(t, store, "web01", "r1")
	showsNothing(t, s)
}

// TestOneNodeDoesNotBlind tests when reports of nodes blind the dashboard: one of two nodes does not, both do.
func TestOneNodeDoesNotBlind(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	var nodes []*model.Node
	var asked, full atomic.Int32
	full.Store(1)
	for at, name := range []string{"web01", "web02"} {
		if err := store.PutState(t.Context(), model.NodeState{Node: name}, time.Hour); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, &model.Node{NodeState: model.NodeState{Node: name, SilentAfter: model.Duration(time.Second)}})
		pingable(t, kvtest.Bind(t, srv), name, func() model.NodeState {
			asked.Add(1)
			answer := model.NodeState{Node: name}
			if at < int(full.Load()) {
				answer.Unstored = map[string]string{model.UnstoredState: "no space left on device"}
			}
			return answer
		})
	}
	find := func() fleet.Unstored {
		for _, n := range nodes {
			n.Heard = time.Now()
		}
		found, err := fleet.FindUnstored(t.Context(), requests.New(store.Store), slices.Values(nodes))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	kvtest.Eventually(t, "both nodes are asked twice", func() (bool, string) {
		if found := find(); !found.Since.IsZero() || strings.Contains(found.States, "web01") {
			t.Fatalf("one node blinds: %+v", found)
		}
		return asked.Load() >= 4, fmt.Sprint(asked.Load())
	})
	full.Store(2)
	kvtest.Eventually(t, "both nodes report it", func() (bool, string) {
		found := find()

		return !found.Since.IsZero() && strings.Contains(found.States, " reports: no space left on device"), fmt.Sprintf("%+v", found)
	})
}

// TestAProblemIsCheckedSoon: after the server did not store messages, the next check is due after recheckPause.
func TestAProblemIsCheckedSoon(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	f := &feed{Store: storeOf(store), look: time.Hour, unstored: fleet.Unstored{Reports: "the server stores no reports"}}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := f.awaitCheck(ctx, seen{}, store.Reconnected()); err != nil {
		t.Errorf("the next check is not due: %v", err)
	}
}

// pingable answers pings to a node until the test ends.
func pingable(t *testing.T, store *kvtest.Store, node string, answer func() model.NodeState) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- store.Serve(ctx, requests.ServeOptions{Node: node, Ready: func() { close(ready) }, Ping: func(context.Context, []byte) (any, error) { return answer(), nil }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// shows waits until the dashboard shows one problem with some texts.
func shows(t *testing.T, s *served, texts ...string) {
	t.Helper()
	kvtest.Eventually(t, "the problem is shown", func() (bool, string) {
		problems := strings.Join(s.overview().Progress.Problems, "\n")
		for _, text := range texts {
			if !strings.Contains(problems, text) {
				return false, problems
			}
		}
		return true, problems
	})
}

// showsNothing waits until the dashboard shows no problem and current data.
func showsNothing(t *testing.T, s *served) {
	t.Helper()
	kvtest.Eventually(t, "nothing is wrong", func() (bool, string) {
		p := s.overview().Progress
		return len(p.Problems) == 0 && p.BlindSince.IsZero(), fmt.Sprintf("%+v", p)
	})
}
