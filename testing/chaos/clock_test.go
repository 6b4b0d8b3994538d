package chaos

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	muster "github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/host"
	hostwatch "github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/manifest"
)

// clockSet changes the clock of the node by an hour and back during the run. All processes share a clock, so
// this agent runs in the test's process.
func clockSet(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := prepare(t, r, 10, srv.URL(), store)
	w.put()
	var step atomic.Int64
	began := time.Now()
	stop := w.runHere(status.NewClock(func() time.Time { return time.Now().Add(time.Duration(step.Load())) }, func() time.Duration { return time.Since(began) }))
	w.judge()
	w.during(func() {
		for range 4 {
			w.pass(300 * time.Millisecond)
			step.Store(int64([]time.Duration{time.Hour, -time.Hour, 0}[w.rand.IntN(3)]))
		}
	})
	w.judge()
	stop()
}

// runHere runs an agent in this process, with a clock, until stop.
func (w *world) runHere(c *status.Clock) (stop func()) {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	watcher := hostwatch.New(log)
	machine := host.New(host.Options{StateDir: w.state, Log: log})
	o := config.Default(node)
	o.StateDir, o.FactsDir, o.Interval = w.state, filepath.Join(w.root, "facts"), model.Duration(time.Hour)
	a, err := agent.New(w.t.Context(), agent.Options{
		Config: o, Version: "test", Host: machine, Log: log, Clock: c,
		Loader:      manifest.NewLoader(manifest.Options{Types: muster.All(), KV: desired.ObserveKV(kvstore.NewContent(w.store.Store).KVGet)}),
		Assignments: watch.New(w.store.Store, watch.Options{Node: node, Log: log}),
		Bundles:     kvstore.NewContent(w.store.Store), Publisher: kvstore.NewReports(w.store.Store), States: kvstore.NewNodes(w.store.Store), Registry: kvstore.NewRegistrations(w.store.Store),
		Facts: func(context.Context, string) (model.Facts, string, []error) { return model.Facts{}, "", nil },
		Watch: watcher.Arm,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, w.t.Context()) }()

	return func() {
		w.t.Helper()
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		watcher.Close()
	}
}
