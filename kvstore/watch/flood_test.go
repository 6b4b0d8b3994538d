package watch_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
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

// A flood of announcements for one family does not delay the assignments of another one.
func TestAFloodOfAnnouncementsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for flooded, other := range map[string]string{"group.web": "node.web01", "node.web01": "group.web"} {
		t.Run(flooded, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Groups: []string{"web"}, Audit: kvtest.Never, GroupJitter: time.Millisecond, Retry: 10 * time.Millisecond})
			w.Synced(t)
			announce(t, srv.Connect(t), flooded, 20_000)
			if _, err := store.Put(t.Context(), other+".motd", []byte("x")); err != nil {
				t.Fatal(err)
			}
			w.Has(t, other+".motd=x")
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

// A bucket that lost many keys is a few lines of the log.
func TestManyLostKeysAreAFewLines(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	known := map[string]model.Entry{}
	for i := range 100 {
		key := fmt.Sprint("node.web01.x", i)
		known[key] = model.Entry{Key: key, Revision: 1000, Time: time.Now()}
	}
	var mu sync.Mutex
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(locked{&mu, &text}, nil))
	w := watch.New(kvtest.Bind(t, srv).Store, watch.Options{Node: "web01", Log: log})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, model.Memory{Entries: known, Stream: time.Now()}, func([]string) {}) }()
	kvtest.Eventually(t, "they are kept", func() (bool, string) {
		_, state := w.Entries()
		return len(state.Kept) == len(known), fmt.Sprint(state.Kept)
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if lines := strings.Count(text.String(), "lost by the bucket"); lines != 10 {
		t.Errorf("%d lines:\n%s", lines, text.String())
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu *sync.Mutex
	to *strings.Builder
}

func (l locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.to.Write(b)
}
