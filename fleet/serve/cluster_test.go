package serve

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestClusterLosesTheLeaderOfReports: reports before, during and after the loss of the leader are shown once
// each. A server that starts later shows the same.
func TestClusterLosesTheLeaderOfReports(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	dial := func() *kvtest.Store {
		t.Helper()
		nc, err := nats.Connect(strings.Join(urls, ","), nats.Timeout(kvtest.Deadline), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)

		return kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
	}
	store := dial()
	kvtest.Eventually(t, "provisioned", func() (bool, string) {
		_, err := store.Apply(t.Context(), provision.Options{Replicas: 3})
		return err == nil, fmt.Sprint(err)
	})
	kvtest.Eventually(t, "checked", func() (bool, string) {
		err := store.Check(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	s := serveFleet(t, dial(), access.Options{})
	s.complete()
	const rounds, nodes = 20, 10
	for round := range rounds {
		switch round {
		case 8:
			servers[leaderOf(t, store, "MUSTER_REPORTS")].Stop()
		case 15:
			for _, one := range servers {
				one.Start(t)
			}
		}
		for i := range nodes {
			r := runOf(t, fmt.Sprint("web", i), fmt.Sprintf("r%d-%d", i, round), model.OutcomeStable, uint64(round+1))
			// It is published again until it is stored, as nodes do, under its id.
			kvtest.Eventually(t, "reported", func() (bool, string) {
				err := kvtest.Publish(t.Context(), store, r)
				return err == nil, fmt.Sprint(err)
			})
		}
	}
	after := serveFleet(t, dial(), access.Options{})
	for _, s := range []*served{s, after} {
		kvtest.Eventually(t, "all runs are known, once each", func() (bool, string) {
			o, runs := s.overview(), 0
			for _, p := range o.History {
				runs += p.Runs
			}
			var found struct{ Runs []struct{ Node string } }
			s.get("runs?limit=1000", &found)
			return runs == rounds*nodes && len(found.Runs) == rounds*nodes && o.Progress.History, fmt.Sprint(runs, len(found.Runs), o.Progress)
		})
	}
	kvtest.Eventually(t, "both know the same, and nothing is wrong", func() (bool, string) {
		one, other, problems := s.known(), after.known(), s.overview().Progress.Problems
		return one == other && len(problems) == 0, difference(one, other) + fmt.Sprint(problems)
	})
}

// leaderOf returns which server leads a stream.
func leaderOf(t *testing.T, s *kvtest.Store, stream string) (n int) {
	t.Helper()
	m := kvtest.Must(t, func() (*jsm.Manager, error) { return jsm.New(s.Conn) })
	kvtest.Eventually(t, "a leader", func() (bool, string) {
		of, err := m.LoadStream(stream)
		if err != nil {
			return false, err.Error()
		}
		info, err := of.Information()
		if err != nil || info.Cluster == nil {
			return false, fmt.Sprint(err)
		}
		_, err = fmt.Sscanf(info.Cluster.Leader, "n%d", &n)
		return err == nil, info.Cluster.Leader
	})

	return n
}

// TestAServerThatIsCutOffIsNotBelieved: an isolated server still answers with its old data.
func TestAServerThatIsCutOffIsNotBelieved(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	nc := servers[2].Connect(t)
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
	kvtest.Eventually(t, "provisioned", func() (bool, string) {
		_, err := store.Apply(t.Context(), provision.Options{Replicas: 3})
		return err == nil, fmt.Sprint(err)
	})
	report(t, store, "web01", "first")
	f := newFeed(storeOf(store), view.New(view.Options{}), time.Hour, slog.New(slog.DiscardHandler))
	f.look = time.Millisecond
	replica := func() (bool, string) {
		m, err := f.Reports.NewestMessage(t.Context())
		return err == nil && m.Sequence == 1, fmt.Sprint(m.Sequence, err)
	}
	kvtest.Eventually(t, "the replica has the report", replica)
	servers[0].Stop()
	servers[1].Stop()
	kvtest.Eventually(t, "the replica answers by itself", replica)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { f.persist(ctx, f.to, "the end of the reports", f.followEnd) })
	all.Go(func() { _ = f.watchStreams(ctx) })
	kvtest.Eventually(t, "it is said", func() (bool, string) {
		text := strings.Join(f.to.Progress().Problems, "; ")
		return strings.Contains(text, "the end of the reports cannot be read since") &&
			strings.Contains(text, "NATS does not say how current this is: no server that is in charge of the stream of reports, the bucket MUSTER_NODES, the bucket MUSTER_MANIFESTS answers"), text
	})
	servers[0].Start(t)
	servers[1].Start(t)
	kvtest.Eventually(t, "it is over", func() (bool, string) {
		problems := f.to.Progress().Problems
		return len(problems) == 0, strings.Join(problems, "; ")
	})
}

// TestASilentServerIsNamed tests that the dashboard names the server of a cluster that does not answer the others.
func TestASilentServerIsNamed(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	nc := servers[2].Connect(t)
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
	kvtest.Eventually(t, "provisioned", func() (bool, string) {
		_, err := store.Apply(t.Context(), provision.Options{Replicas: 3})
		return err == nil, fmt.Sprint(err)
	})
	s := serveFleet(t, store, access.Options{})
	s.complete()
	servers[0].Stop()
	shows(t, s, "the server n0 does not answer the other NATS servers since ", "/healthz")
	servers[0].Start(t)
	showsNothing(t, s)
}
