package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/musterfleet/muster/testing/kvtest"
)

// agentKilled kills the agent at random moments.
func agentKilled(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := newWorld(t, r, 10, srv.URL(), store)
	w.during(func() {
		for range 4 {
			w.pass(500 * time.Millisecond)
			w.killAgent()
			w.pass(100 * time.Millisecond)
			w.startAgent()
		}
	})
	w.judge()
	w.end()
}

// serverKilled kills the only server, and with luck the agent too while it is away.
func serverKilled(t *testing.T, r *rand.Rand) {
	servers, store := startServers(t, 1)
	w := newWorld(t, r, 10, servers[0].url, store)
	w.pardons.disorder = true
	w.during(func() {
		for range 2 {
			w.pass(500 * time.Millisecond)
			servers[0].kill()
			w.pass(500 * time.Millisecond)
			if w.rand.IntN(2) == 0 {
				w.killAgent()
				w.startAgent()
			}
			servers[0].run()
			w.awaitServer()
		}
	})
	w.judge()
	w.end()
}

// leaderKilled kills the leaders of a cluster, of the assignments or of the reports.
func leaderKilled(t *testing.T, r *rand.Rand) {
	servers, store := startServers(t, 3)
	w := newWorld(t, r, 10, servers[0].url+", "+servers[1].url+", "+servers[2].url, store)
	w.pardons.disorder = true
	leader := leaderOf(t, store, servers, []string{"KV_MUSTER_MANIFESTS", "MUSTER_REPORTS", "KV_MUSTER_NODES"}[r.IntN(3)])
	w.during(func() {
		w.pass(300 * time.Millisecond)
		leader.kill()
		w.pass(time.Second)
	})
	w.judge() // by the two that are left
	leader.run()
	w.awaitServer()
	w.judge()
	w.end()
}

// leaderOf returns the server that leads a stream.
func leaderOf(t *testing.T, store *kvtest.Store, servers []*natsServer, stream string) *natsServer {
	t.Helper()
	var leader *natsServer
	await(t, stream+" has a leader", func() error {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		s, err := store.JetStream().Stream(ctx, stream)
		if err != nil {
			return err
		}
		name := s.CachedInfo().Cluster.Leader
		at := slices.IndexFunc(servers, func(s *natsServer) bool { return s.name == name })
		if at < 0 {
			return fmt.Errorf("it is %q", name)
		}
		leader = servers[at]
		return nil
	})

	return leader
}

// awaitServer waits until the bucket can be read.
func (w *world) awaitServer() {
	w.t.Helper()
	await(w.t, "the bucket can be read", func() error {
		ctx, stop := context.WithTimeout(w.t.Context(), 2*time.Second)
		defer stop()
		_, err := w.store.Get(ctx, siteKey)
		return err
	})
}

// end shuts the agent down, which leaves nothing behind.
func (w *world) end() {
	w.t.Helper()
	w.agent.terminate()
	w.agent = nil
	j := judge{w}
	if err := j.checkLitter(); err != nil {
		w.t.Error(err)
	}
	// A server that is no leader may have the last ones a moment later.
	await(w.t, "the reports are complete", j.checkReports)
}
