package watch_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/testing/kvtest"
)

// announce publishes forged announcements of many keys of a family.
func announce(t *testing.T, nc *nats.Conn, family string, count int) {
	t.Helper()
	for i := range count {
		m := nats.NewMsg(fmt.Sprintf("muster.changed.%s.x%05d", family, i))
		m.Header.Set(nats.JSSequence, strconv.FormatUint(math.MaxUint64, 10))
		if err := nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// A server that announces any number of keys that it does not have holds up neither what is
// assigned afterwards, to the node and to the group, nor the audit.
func TestAFloodOfAnnouncementsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for _, flooded := range []string{"group.web", "node.web01"} {
		t.Run(flooded, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Groups: []string{"web"}, Audit: kvtest.Never, GroupJitter: time.Millisecond, Retry: 10 * time.Millisecond})
			w.Synced(t)
			announce(t, srv.Connect(t), flooded, 20_000)
			for _, family := range []string{"group.web", "node.web01"} {
				if _, err := store.Put(t.Context(), family+".motd", []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			w.Has(t, "group.web.motd=x", "node.web01.motd=x")
		})
	}
}

// A key that is announced again and again, as later than it is, is read all the same.
func TestAKeyThatIsAlwaysAnnouncedIsRead(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: kvtest.Never, GroupJitter: time.Millisecond})
	w.Synced(t)
	nc := srv.Connect(t)
	if _, err := store.Put(t.Context(), "node.web01.x00000", []byte("x")); err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "it is in force", func() (bool, string) {
		announce(t, nc, "node.web01", 1)
		entries, _ := w.Entries()
		return len(entries) == 1, fmt.Sprint(entries)
	})
}
