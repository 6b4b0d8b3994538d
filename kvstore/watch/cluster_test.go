package watch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// The leader of the stream goes away in the middle of puts; replicas answer
// reads, and may lag.
func TestClusterLosesItsLeader(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	urls := []string{servers[0].URL(), servers[1].URL(), servers[2].URL()}
	dial := func() *kvtest.Store {
		t.Helper()
		nc, err := nats.Connect(strings.Join(urls, ","), nats.Timeout(kvtest.Deadline), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		s, err := kvtest.Of(nc, "")
		if err != nil {
			t.Fatal(err)
		}

		return s
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
	if _, err := store.Apply(t.Context(), provision.Options{Replicas: 1}); !errors.Is(err, provision.ErrShrink) {
		t.Errorf("fewer replicas = %v", err)
	}
	var nodes [9]*kvtest.Watching
	for i := range nodes {
		nodes[i] = kvtest.Watch(t, dial(), watch.Options{Node: fmt.Sprint("n", i), Audit: 500 * time.Millisecond, Retry: 50 * time.Millisecond})
	}
	for _, n := range nodes {
		n.Synced(t)
	}
	for round := range 20 {
		if round == 10 {
			servers[leader(t, store)].Stop()
		}
		for i := range nodes {
			family := fmt.Sprint("node.n", i)
			kvtest.Eventually(t, "put", func() (bool, string) {
				_, err := store.Put(t.Context(), family+".motd", fmt.Append(nil, round))
				return err == nil, fmt.Sprint(err)
			})
		}
	}
	for i, n := range nodes {
		n.Has(t, fmt.Sprintf("node.n%d.motd=19", i))
	}
	for _, s := range servers {
		s.Start(t)
	}
	kvtest.Eventually(t, "unassigned", func() (bool, string) {
		_, err := store.Delete(t.Context(), "node.n0.motd", nil)
		return err == nil, fmt.Sprint(err)
	})
	nodes[0].Has(t)
	var listed []model.Entry
	// A restarted replica answers with its old data.
	kvtest.Eventually(t, "listed", func() (bool, string) {
		var err error
		listed, err = store.List(t.Context())
		return err == nil && len(listed) == len(nodes)-1, fmt.Sprint(len(listed), " listed, ", err)
	})
	for _, l := range listed {
		if want := model.DigestOf([]byte("19")); l.Digest != want {
			t.Errorf("%s has digest %s, want %s", l.Key, l.Digest, want)
		}
	}
	for _, n := range nodes {
		if _, state := n.Entries(); len(state.Kept) > 0 {
			t.Errorf("kept: %v", state.Kept)
		}
	}
}

// leader returns which server leads the stream of manifests.
func leader(t *testing.T, s *kvtest.Store) int {
	t.Helper()
	m, err := jsm.New(s.Conn)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	kvtest.Eventually(t, "a leader", func() (bool, string) {
		stream, err := m.LoadStream("KV_MUSTER_MANIFESTS")
		if err != nil {
			return false, err.Error()
		}
		info, err := stream.Information()
		if err != nil || info.Cluster == nil {
			return false, fmt.Sprint(err)
		}
		_, err = fmt.Sscanf(info.Cluster.Leader, "n%d", &n)
		return err == nil, info.Cluster.Leader
	})

	return n
}
