package watch_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// controlOptions returns the options of a node that only follows announcements, or that audits constantly.
func controlOptions(audit time.Duration) watch.Options {
	return watch.Options{Node: "web01", Groups: []string{"web"}, Audit: audit, GroupJitter: time.Millisecond, Retry: time.Millisecond, Gone: time.Millisecond}
}

// write writes control keys and their values in turn; an empty value deletes.
func write(t *testing.T, s *kvtest.Store, keys ...string) {
	t.Helper()
	b := kvstore.NewControl(s.Store)
	for i := 0; i < len(keys); i += 2 {
		var err error
		if keys[i+1] == "" {
			_, err = b.Delete(t.Context(), keys[i], nil)
		} else {
			_, err = b.Put(t.Context(), keys[i], []byte(keys[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Values about a node are announced to it, values about other nodes are not. An assignment of the same key is
// independent.
func TestControlIsAnnounced(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	manifests := kvtest.Watch(t, kvtest.Bind(t, srv), controlOptions(kvtest.Never))
	w := kvtest.WatchControl(t, kvtest.Bind(t, srv), controlOptions(kvtest.Never), model.Memory{})
	w.Synced(t)
	manifests.Synced(t)
	write(t, store, "node.web01.pause", "1", "group.web.pause", "2", "group.all.pause", "3", "node.web02.pause", "4", "group.db.pause", "5", "node.web01.labels", "6")
	w.Has(t, "group.all.pause=3", "group.web.pause=2", "node.web01.labels=6", "node.web01.pause=1")
	if _, err := store.Put(t.Context(), "node.web01.pause", []byte("manifest")); err != nil {
		t.Fatal(err)
	}
	manifests.Has(t, "node.web01.pause=manifest")
	write(t, store, "node.web01.pause", "", "group.all.pause", "")
	w.Has(t, "group.web.pause=2", "node.web01.labels=6")
	manifests.Has(t, "node.web01.pause=manifest")
	if _, state := manifests.Entries(); len(state.Invalid) > 0 {
		t.Errorf("taken for assignments: %v", state.Invalid)
	}
}

// A fleet of an earlier version has no such bucket, which is no error. When the bucket is created, its values
// become known without an announcement.
func TestControlOfAFleetWithoutIt(t *testing.T) {
	t.Parallel()
	for name, audit := range map[string]time.Duration{"announced": kvtest.Never, "audited": 5 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			m := kvtest.Manager(t, srv)
			if err := m.DeleteStream("KV_MUSTER_CONTROL"); err != nil {
				t.Fatal(err)
			}
			w := kvtest.WatchControl(t, kvtest.Bind(t, srv), controlOptions(audit), model.Memory{})
			w.Synced(t)
			if entries, state := w.Entries(); state.Err != nil || len(entries) > 0 {
				t.Errorf("without a bucket: %v, %v", entries, state.Err)
			}
			if _, err := kvstore.NewControl(store.Store).Put(t.Context(), "node.web01.pause", nil); err == nil {
				t.Error("something was put")
			}
			if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
				t.Fatal(err)
			}
			if audit != kvtest.Never {
				kvtest.Update(t, m, "KV_MUSTER_CONTROL", func(c *api.StreamConfig) { c.RePublish = nil })
			}
			write(t, store, "node.web01.pause", "1")
			w.Has(t, "node.web01.pause=1")
		})
	}
}

// A bucket that is removed, or made again, takes nothing away.
func TestControlThatIsLostIsKept(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	write(t, store, "node.web01.pause", "1", "group.web.pause", "2")
	w := kvtest.WatchControl(t, kvtest.Bind(t, srv), controlOptions(5*time.Millisecond), model.Memory{})
	w.Has(t, "group.web.pause=2", "node.web01.pause=1")
	if err := m.DeleteStream("KV_MUSTER_CONTROL"); err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "the loss is noticed", func() (bool, string) {
		_, state := w.Entries()
		return state.Err != nil || len(state.Kept) == 2, "not noticed"
	})
	w.Has(t, "group.web.pause=2", "node.web01.pause=1")
	last := w.Memory()
	w.Stop()
	w = kvtest.WatchControl(t, kvtest.Bind(t, srv), controlOptions(5*time.Millisecond), last)
	w.Keeps(t, "group.web.pause", "node.web01.pause")
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	w.Keeps(t, "group.web.pause", "node.web01.pause")
	write(t, store, "node.web01.pause", "3", "group.web.pause", "")
	w.Has(t, "node.web01.pause=3")
	w.Keeps(t)
}

// TestControlIsReadInOrder: the jitter of groups does not delay a group's pause past a later resume of the node or
// of another group.
func TestControlIsReadInOrder(t *testing.T) {
	t.Parallel()
	for _, resumed := range []string{"node.web01.pause", "group.web.pause"} {
		t.Run(resumed, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			write(t, store, resumed, "1")
			o := controlOptions(kvtest.Never)
			var calls atomic.Int32
			o.GroupJitter, o.Rand = time.Hour, func() float64 {
				if calls.Add(1) == 1 {
					return 0.9
				}
				return 0
			}
			w := kvtest.WatchControl(t, kvtest.Bind(t, srv), o, model.Memory{})
			w.Synced(t)
			calls.Store(0)
			write(t, store, "group.all.pause", "2")
			kvtest.Eventually(t, "the pause is announced", func() (bool, string) { return calls.Load() > 0, "no announcement" })
			write(t, store, resumed, "")
			w.Has(t, "group.all.pause=2")
		})
	}
}

// TestControlIsReadInOrderAfterAReconnect: a node that missed the pause of a group and the later resume of the node sees
// both at once.
func TestControlIsReadInOrderAfterAReconnect(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	write(t, store, "node.web01.pause", "1")
	o := controlOptions(kvtest.Never)
	var calls atomic.Int32
	o.GroupJitter, o.Rand = time.Hour, func() float64 {
		if calls.Add(1) == 1 {
			return 0
		}
		return 0.9
	}
	node := kvtest.Bind(t, srv)
	w := kvtest.WatchControl(t, node, o, model.Memory{})
	w.Synced(t)
	kvtest.Update(t, kvtest.Manager(t, srv), "KV_MUSTER_CONTROL", func(c *api.StreamConfig) { c.RePublish = nil })
	write(t, store, "group.all.pause", "2", "node.web01.pause", "")
	calls.Store(0)
	if err := node.Conn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "group.all.pause=2")
}
