package watch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/racing"
)

// A thousand nodes on separate connections. The server restarts during a thousand puts, half of them without
// muster. Every node is current within one audit, and no consumer exists.
func TestThousandNodesOverARestart(t *testing.T) {
	nodes := racing.Less(1000, 200)
	srv, store := kvtest.New(t)
	fleet := make([]*kvtest.Watching, nodes)
	for i := range fleet {
		// Bind asks for each stream, which is not what this test is about.
		own, err := kvtest.Of(srv.Connect(t, nats.Timeout(kvtest.Deadline)), "")
		if err != nil {
			t.Fatal(err)
		}
		fleet[i] = kvtest.Watch(t, own, watch.Options{Node: fmt.Sprint("n", i), Audit: 20 * time.Second, Retry: 100 * time.Millisecond})
	}
	for _, w := range fleet {
		w.Synced(t)
	}
	raw := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	for i := range nodes {
		if i == nodes/2 {
			srv.Stop()
			srv.Start(t)
		}
		kvtest.Eventually(t, "put", func() (bool, string) {
			var err error
			if family := fmt.Sprint("node.n", i); i%2 == 0 {
				_, err = store.Put(t.Context(), family+".motd", fmt.Append(nil, i))
			} else {
				_, err = raw.Put(t.Context(), family+".motd", fmt.Append(nil, i))
			}

			return err == nil, fmt.Sprint(err)
		})
	}
	kvtest.Eventually(t, "put for all", func() (bool, string) {
		_, err := store.Put(t.Context(), "group.all.base", []byte("all"))
		return err == nil, fmt.Sprint(err)
	})
	for i, w := range fleet {
		w.Has(t, "group.all.base=all", fmt.Sprintf("node.n%d.motd=%d", i, i))
	}
	m := kvtest.Manager(t, srv)
	kvtest.Eventually(t, "no consumer is left", func() (bool, string) { return kvtest.NoConsumers(m, "KV_MUSTER_MANIFESTS") })
	for _, w := range fleet {
		kvtest.Eventually(t, "nothing is kept or failed", func() (bool, string) {
			_, state := w.Entries()
			return len(state.Kept) == 0 && state.Err == nil, fmt.Sprintf("%+v", state)
		})
	}
}
