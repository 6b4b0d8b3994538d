package watch_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"nats-server": serve})
}

// serve runs a server on a store and an address, until it is killed.
func serve() error {
	address, err := netip.ParseAddrPort(os.Args[2])
	if err != nil {
		return err
	}
	srv, err := server.NewServer(&server.Options{Host: address.Addr().String(), Port: int(address.Port()), JetStream: true, JetStreamMaxStore: 64 << 30, StoreDir: os.Args[1], NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	srv.Start()
	if !srv.ReadyForConnections(kvtest.Deadline) {
		return errors.New("the server is not ready")
	}
	actor.Ready()
	srv.WaitForShutdown()

	return nil
}

// mortal returns what starts a server that can be killed, on the same store and address each time,
// and what connects to it.
func mortal(t *testing.T) (play func() *actor.Actor, connect func() *nats.Conn) {
	t.Helper()
	dir, address := t.TempDir(), loopback.Address(t).String()
	play = func() *actor.Actor { return actor.Play(t, "nats-server", dir, address) }
	connect = func() *nats.Conn {
		nc, err := nats.Connect("nats://"+address, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.Timeout(kvtest.Deadline))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)

		return nc
	}

	return play, connect
}

// provisioned returns the store of a new fleet.
func provisioned(t *testing.T, nc *nats.Conn) *kvtest.Store {
	t.Helper()
	store, err := kvtest.Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}

	return store
}

// A forgotten node stays forgotten after two kills of the server. The server rebuilds its index except for
// delete markers.
func TestServerKilledAfterNodesWereForgotten(t *testing.T) {
	t.Parallel()
	play, connect := mortal(t)
	srv, nc := play(), connect()
	store := provisioned(t, nc)
	for _, node := range []string{"web01", "web02"} {
		for range 3 {
			if err := errors.Join(store.PutState(t.Context(), model.NodeState{Node: node}, time.Hour), store.PutFacts(t.Context(), node, model.Facts{"a": 1})); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := kvstore.NewNodes(store.Store).Remove(t.Context(), "web02"); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		srv.Kill()
		srv = play()
		kvtest.Eventually(t, "back", func() (bool, string) {
			return nc.IsConnected() && nc.Stats().Reconnects > uint64(round), nc.Status().String()
		})
		kvtest.Eventually(t, "nodes", func() (bool, string) {
			all, err := store.Nodes(t.Context())
			return err == nil && len(all) == 1 && all[0].Node == "web01", fmt.Sprint(all, err)
		})
		if facts, err := store.FactsDocument(t.Context(), "web02"); !errors.Is(err, model.ErrNotFound) {
			t.Errorf("facts %s, %v", facts, err)
		}
	}
}

// The server is killed repeatedly during puts to one family, so some values are stored without an
// announcement. A running node and a new one find each.
func TestServerKilledAmidPuts(t *testing.T) {
	t.Parallel()
	play, connect := mortal(t)
	srv := play()
	provisioned(t, connect())
	o := watch.Options{Node: "web01", Audit: 100 * time.Millisecond, GroupJitter: time.Millisecond, Retry: time.Millisecond}
	w := kvtest.Watch(t, kvtest.BindTo(t, connect()), o)
	w.Synced(t)
	nc := connect()
	for round := range 5 {
		acked, err := nc.SubscribeSync(nc.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			_ = nc.PublishRequest(fmt.Sprintf("$KV.MUSTER_MANIFESTS.node.web01.r%d-%03d", round, i), acked.Subject, []byte("x"))
		}
		// It is killed once some are stored.
		if _, err := acked.NextMsg(kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
		srv.Kill()
		srv = play()
		// Also to a client that has not noticed yet that the server was away.
		kvtest.Eventually(t, "back", func() (bool, string) {
			return nc.IsConnected() && nc.Stats().Reconnects > uint64(round), nc.Status().String()
		})
	}
	var want []string
	kvtest.Eventually(t, "keys", func() (bool, string) {
		keys, err := kvtest.PlainKV(t, connect(), "MUSTER_MANIFESTS").Keys(t.Context())
		want = keys
		return err == nil, fmt.Sprint(err)
	})
	slices.Sort(want)
	for i := range want {
		want[i] += "=x"
	}
	t.Logf("%d of 1000 stored", len(want))
	w.Has(t, want...)
	kvtest.Watch(t, kvtest.BindTo(t, connect()), o).Has(t, want...)
	w.Stop()
}
