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

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
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
	srv, err := server.NewServer(&server.Options{Host: address.Addr().String(), Port: int(address.Port()), JetStream: true, StoreDir: os.Args[1], NoLog: true, NoSigs: true})
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

// The server is killed while keys of one family are put, again and again: some are
// stored and were never announced. A node that was there all the time and one that
// is new find each.
func TestServerKilledAmidPuts(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), loopback.Address(t).String()
	play := func() *actor.Actor { return actor.Play(t, "nats-server", dir, address) }
	connect := func() *nats.Conn {
		nc, err := nats.Connect("nats://"+address, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.Timeout(kvtest.Deadline))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)

		return nc
	}
	srv := play()
	store, err := kvtest.Of(connect(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
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
