package status

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// shelf is a Store in memory. Its methods return away.
type shelf struct {
	node model.Node
	puts int
	away error
}

func (s *shelf) PutState(_ context.Context, state model.NodeState, _ time.Duration) error {
	if s.away == nil {
		s.node = model.Node{NodeState: state}
		s.puts++
	}

	return s.away
}

func (s *shelf) PutFacts(context.Context, string, model.Facts) error { return s.away }
func (s *shelf) MaxMessage() int64                                   { return 0 }

func (s *shelf) State(context.Context, string) (model.Node, error) { return s.node, s.away }

// fullShelf has no room for a state until a time.
type fullShelf struct {
	shelf
	until time.Time
}

func (s *fullShelf) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	if time.Now().Before(s.until) {
		return errors.New("no room")
	}

	return s.shelf.PutState(ctx, state, ttl)
}

// TestFailuresAreRecalled of the state that an earlier agent of the node stored, before it is
// replaced.
func TestFailuresAreRecalled(t *testing.T) {
	t.Parallel()
	const key = "group.all.site"
	since := time.Now().Add(-time.Hour).UTC()
	n := New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, System())
	n.SetAssignments(map[string]model.ManifestState{key: {Revision: 1}})
	store := &shelf{}
	store.node.Manifests = map[string]model.ManifestState{key: {Revision: 1, Outcome: model.OutcomeFailed, FailedSince: since}}
	h := &Heartbeat{
		Store: store, Node: n, Clock: System(), Log: slog.New(slog.DiscardHandler),
		Facts: func() (model.Facts, string) { return nil, "" }, ClockMoved: func() {},
	}
	if err := h.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := store.node.Manifests[key].FailedSince; !got.Equal(since) {
		t.Errorf("stored as failing since %s, want %s", got, since)
	}
}

// TestUnchangedStateIsStoredOnce, after a failed try.
func TestUnchangedStateIsStoredOnce(t *testing.T) {
	t.Parallel()
	beats := config.Config{Heartbeat: model.Duration(time.Hour)}
	n := New("v", func() config.Config { return beats }, func() int { return 0 }, func() int { return 0 }, System())
	store := &shelf{away: errors.New("away")}
	h := &Heartbeat{
		Store: store, Node: n, Clock: System(), Log: slog.New(slog.DiscardHandler),
		Facts: func() (model.Facts, string) { return nil, "" }, ClockMoved: func() {},
	}
	if err := h.once(t.Context()); err == nil || store.puts != 0 {
		t.Errorf("a failed put is reported as stored: %v", err)
	}
	store.away = nil
	for range 2 {
		if err := h.once(t.Context()); err != nil || store.puts != 1 {
			t.Errorf("stored %d times: %v", store.puts, err)
		}
	}
}

// TestDrainedOutbox: after the outbox is drained, the heartbeat reads the state only if the stored state counts waiting
// reports. Reading the state of thousands of manifests takes milliseconds, and the outbox is drained after each run.
func TestDrainedOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := config.Config{Heartbeat: model.Duration(time.Hour), StateTTL: model.Duration(24 * time.Hour)}
		outbox, looked := atomic.Int64{}, 0
		n := New("v", func() config.Config { return beats }, func() int { return int(outbox.Load()) }, func() int { return 0 }, System())
		h := &Heartbeat{
			Store: &shelf{}, Node: n, Clock: System(), Drained: tasks.NewSignal(), Log: slog.New(slog.DiscardHandler),
			Facts: func() (model.Facts, string) { return nil, "" }, ClockMoved: func() {}, Inspect: func() { looked++ },
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = h.Run(ctx) }()
		outbox.Store(3)
		n.SetAssignments(map[string]model.ManifestState{"group.all.site": {Revision: 1}})
		n.Record("group.all.site", true).Conclude(&model.Run{Revision: 1}, true)
		synctest.Wait()
		before := looked
		outbox.Store(0)
		for i, want := range []int{1, 1} {
			h.Drained.Notify()
			synctest.Wait()
			if looked-before != want {
				t.Errorf("after signal %d: looked %d times", i+1, looked-before)
			}
		}
		if n := h.Store.(*shelf).node.Outbox; n != 0 {
			t.Errorf("the stored state counts %d waiting reports", n)
		}
	})
}

// TestANewRevisionIsStoredWithItsRun, or after a second.
func TestANewRevisionIsStoredWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := config.Config{Heartbeat: model.Duration(time.Hour), StateTTL: model.Duration(24 * time.Hour)}
		outbox, store := atomic.Int64{}, &shelf{}
		n := New("v", func() config.Config { return beats }, func() int { return int(outbox.Load()) }, func() int { return 0 }, System())
		h := &Heartbeat{
			Store: store, Node: n, Clock: System(), Drained: tasks.NewSignal(), Log: slog.New(slog.DiscardHandler),
			Facts: func() (model.Facts, string) { return nil, "" }, ClockMoved: func() {},
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = h.Run(ctx) }()
		synctest.Wait()
		revision := func() uint64 { return store.node.Manifests["group.all.site"].Revision }
		assign := func(revision uint64) {
			n.SetAssignments(map[string]model.ManifestState{"group.all.site": {Revision: revision}})
			synctest.Wait()
		}
		assign(1)
		if revision() != 0 {
			t.Error("it is stored before its run")
		}
		outbox.Store(1)
		n.Record("group.all.site", true).Conclude(&model.Run{Revision: 1}, true)
		synctest.Wait()
		if revision() != 0 {
			t.Error("it is stored before its reports are published")
		}
		outbox.Store(0)
		h.Drained.Notify()
		synctest.Wait()
		if revision() != 1 {
			t.Error("it is not stored after its run")
		}
		assign(2)
		<-time.After(longestHold)
		synctest.Wait()
		if revision() != 2 {
			t.Error("a long run delays its state")
		}
	})
}

// TestARefusedStateIsRetriedSoon: the server sends no event when a full store has room again, so the wait between two tries
// stays short after a long time.
func TestARefusedStateIsRetriedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := config.Config{Heartbeat: model.Duration(time.Hour), StateTTL: model.Duration(24 * time.Hour)}
		n := New("v", func() config.Config { return beats }, func() int { return 0 }, func() int { return 0 }, System())
		freed := time.Now().Add(30 * time.Minute)
		store := &fullShelf{until: freed}
		h := &Heartbeat{
			Store: store, Node: n, Clock: System(), Log: slog.New(slog.DiscardHandler),
			Facts: func() (model.Facts, string) { return nil, "" }, ClockMoved: func() {},
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = h.Run(ctx) }()
		<-time.After(time.Until(freed.Add(10 * time.Second)))
		synctest.Wait()
		if store.puts == 0 {
			t.Error("not stored within 10 s of free room")
		}
	})
}
