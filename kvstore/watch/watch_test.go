package watch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

func TestRawPutIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Groups: []string{"web"}, Audit: kvtest.Never})
	w.Synced(t)
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	revision, err := kv.PutString(t.Context(), "node.web01.motd", "one")
	if err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.motd=one")
	w.WokenBy(t, "node.web01.motd")
	entries, _ := w.Entries()
	if e := entries["node.web01.motd"]; e.Revision != revision || e.Family != "node.web01" || e.Name != "motd" || e.Time.IsZero() {
		t.Errorf("entry = %+v", e)
	}
	// The bucket takes no rollup, which could remove all other keys.
	if err := kv.Purge(t.Context(), "node.web01.motd"); err == nil {
		t.Error("purged by a rollup")
	}
	w.Has(t, "node.web01.motd=one")
	for i := range 2 {
		if err := kv.Delete(t.Context(), "node.web01.motd"); err != nil {
			t.Fatal(err)
		}
		w.Has(t)
		if _, err := kv.PutString(t.Context(), "node.web01.motd", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		w.Has(t, fmt.Sprintf("node.web01.motd=%d", i))
	}
}

func TestFamiliesOfANode(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Groups: []string{"web", "db"}, Audit: kvtest.Never, GroupJitter: time.Millisecond})
	w.Synced(t)
	for _, family := range []string{"node.web01", "node.web02", "node.web01x", "group.web", "group.db", "group.mail", "group.all"} {
		if _, err := store.Put(t.Context(), family+".motd", []byte(family)); err != nil {
			t.Fatal(err)
		}
	}
	w.Has(t, "group.all.motd=group.all", "group.db.motd=group.db", "group.web.motd=group.web", "node.web01.motd=node.web01")
	for _, family := range []string{"group.web", "node.web01"} {
		if _, err := store.Delete(t.Context(), family+".motd", nil); err != nil {
			t.Fatal(err)
		}
	}
	w.Has(t, "group.all.motd=group.all", "group.db.motd=group.db")
}

func TestWhatIsThereIsKnownAtStart(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for i := range 3 {
		if _, err := store.Put(t.Context(), "group.all."+fmt.Sprint("m", i), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	for _, key := range []string{"node.web01.raw1", "node.web01.raw2", "group.all.raw3", "group.all.m1", "node.web01._note", "node.web01.gone"} {
		if _, err := kv.PutString(t.Context(), key, "raw"); err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Delete(t.Context(), "node.web01.gone"); err != nil {
		t.Fatal(err)
	}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: kvtest.Never, GroupJitter: time.Millisecond})
	w.Has(t, "group.all.m0=0", "group.all.m1=raw", "group.all.m2=2", "group.all.raw3=raw", "node.web01.raw1=raw", "node.web01.raw2=raw")
	w.Synced(t)
	if ok, names := kvtest.NoConsumers(kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS"); !ok {
		t.Errorf("consumers left: %s", names)
	}
}

func TestWakesOnceWhenNothingIsAssigned(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: time.Millisecond, GroupJitter: time.Millisecond})
	w.Synced(t)
	first, _ := w.Entries()
	for range 3 {
		_, before := w.Entries()
		kvtest.Eventually(t, "audits", func() (bool, string) {
			_, state := w.Entries()
			return state.At.After(before.At), fmt.Sprint(state)
		})
	}
	if wakes, woken := w.Wakes(); len(first) != 0 || wakes != 1 || len(woken) != 0 {
		t.Errorf("%d entries, %d wakes for %v", len(first), wakes, woken)
	}
}

// Values stored during the node's outage were never announced to it.
func TestLostAnnouncements(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options watch.Options
		lose    func(*testing.T, *natstest.Server, *kvtest.Store) (restore func())
	}{
		"found on the audit": {
			options: watch.Options{Audit: 10 * time.Millisecond},
			// Without republish all announcements are lost, though the node is connected.
			lose: func(t *testing.T, srv *natstest.Server, _ *kvtest.Store) func() {
				kvtest.Update(t, kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
				return func() {}
			},
		},
		"found after a reconnect": {
			options: watch.Options{Audit: kvtest.Never, GroupJitter: time.Millisecond},
			lose: func(t *testing.T, srv *natstest.Server, node *kvtest.Store) func() {
				kvtest.Update(t, kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
				return func() {
					if err := node.Conn.ForceReconnect(); err != nil {
						t.Error(err)
					}
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			put := func(family, name, value string) {
				t.Helper()
				if _, err := store.Put(t.Context(), model.Key(family, name), []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			put("node.web01", "motd", "one")
			put("node.web01", "gone", "one")
			put("group.web", "sshd", "one")
			node := kvtest.Bind(t, srv)
			tt.options.Node, tt.options.Groups = "web01", []string{"web"}
			w := kvtest.Watch(t, node, tt.options)
			w.Synced(t)
			restore := tt.lose(t, srv, node)
			put("node.web01", "motd", "two")
			put("node.web01", "new", "two")
			put("group.web", "sshd", "two")
			if _, err := store.Delete(t.Context(), "node.web01.gone", nil); err != nil {
				t.Fatal(err)
			}
			kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
			if _, err := kv.PutString(t.Context(), "group.all.raw", "two"); err != nil {
				t.Fatal(err)
			}
			restore()
			w.Has(t, "group.all.raw=two", "group.web.sshd=two", "node.web01.motd=two", "node.web01.new=two")
		})
	}
}

func TestUnannouncedNamesAreFoundOnTheAudit(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond})
	w.Synced(t)
	kvtest.Update(t, kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	for _, key := range []string{"node.web01.a", "node.web01.b"} {
		if _, err := kv.PutString(t.Context(), key, "raw"); err != nil {
			t.Fatal(err)
		}
	}
	w.Has(t, "node.web01.a=raw", "node.web01.b=raw")
	if err := kv.Delete(t.Context(), "node.web01.a"); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.b=raw")
}

func TestWatchNeedsNoConsumerToSpare(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.WithConfig(`accounts: {A: {jetstream: {max_consumers: 1}, users: [{user: a, password: a}]}}, no_auth_user: a`))
	store, err := kvtest.Of(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), "KV_MUSTER_MANIFESTS", jetstream.ConsumerConfig{Durable: "another"}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("one")); err != nil {
		t.Fatal(err)
	}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", GroupJitter: time.Millisecond})
	w.Has(t, "node.web01.motd=one")
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.motd=two")
}

func TestRecreatedStreamKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, name := range []string{"motd", "sshd", "cron"} {
		if _, err := store.Put(t.Context(), "node.web01."+name, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	o := watch.Options{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond, Retry: time.Millisecond}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), o)
	w.Synced(t)
	all := []string{"node.web01.cron=one", "node.web01.motd=one", "node.web01.sshd=one"}
	w.Has(t, all...)
	_, before := w.Entries()

	if err := kvtest.Manager(t, srv).DeleteStream("KV_MUSTER_MANIFESTS"); err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "the loss is noticed", func() (bool, string) {
		_, state := w.Entries()
		return errors.Is(state.Err, model.ErrNotProvisioned), fmt.Sprintf("%+v", state)
	})
	w.Has(t, all...)
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	keys := []string{"node.web01.cron", "node.web01.motd", "node.web01.sshd"}
	w.Keeps(t, keys...)
	w.Has(t, all...)

	// The same sequence numbers come again, with other content: the new is in force,
	// the rest stays.
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.cron=one", "node.web01.motd=two", "node.web01.sshd=one")
	w.Keeps(t, "node.web01.cron", "node.web01.sshd")
	// An audit in progress may have found less.
	kvtest.Eventually(t, "all is well with the new stream", func() (bool, string) {
		_, state := w.Entries()
		return !state.Stream.Equal(before.Stream) && state.Err == nil, fmt.Sprintf("%+v, was of stream %s", state, before.Stream)
	})
	if _, err := store.Delete(t.Context(), "node.web01.sshd", nil); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.cron=one", "node.web01.motd=two")
	w.Keeps(t, "node.web01.cron")

	// A restarted node also keeps its known values.
	w.Stop()
	o.Gone = 20 * time.Millisecond
	again := kvtest.WatchSince(t, kvtest.Bind(t, srv), o, remembered(t, w))
	again.Synced(t)
	again.Keeps(t, "node.web01.cron")
	again.Has(t, "node.web01.cron=one", "node.web01.motd=two")
	// In its own stream, a missing name is unassigned; only the list shows it.
	purge(t, srv, "node.web01.motd")
	again.Has(t, "node.web01.cron=one")
	again.Keeps(t, "node.web01.cron")
}

// TestRecreatedStreamIsNoticedByAPut: not only by the next audit, which never comes here.
func TestRecreatedStreamIsNoticedByAPut(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, key := range []string{"node.web01.motd", "group.all.sshd", "group.all.cron"} {
		if _, err := store.Put(t.Context(), key, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: kvtest.Never, GroupJitter: time.Millisecond, Retry: time.Millisecond})
	w.Synced(t)
	w.Has(t, "group.all.cron=one", "group.all.sshd=one", "node.web01.motd=one") // the listener also has the values
	kvtest.Recreate(t, kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS", func(*api.StreamConfig) {})
	if _, err := store.Put(t.Context(), "node.web01.new", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.Keeps(t, "group.all.cron", "group.all.sshd", "node.web01.motd")
	w.Has(t, "group.all.cron=one", "group.all.sshd=one", "node.web01.motd=one", "node.web01.new=two")
}

func TestNodeThatStartsAfterTheStreamWasRecreated(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("one")); err != nil {
		t.Fatal(err)
	}
	o := watch.Options{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), o)
	w.Synced(t)
	w.Stop()
	last := remembered(t, w)
	if err := kvtest.Manager(t, srv).DeleteStream("KV_MUSTER_MANIFESTS"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "node.web01.sshd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	again := kvtest.WatchSince(t, kvtest.Bind(t, srv), o, last)
	again.Has(t, "node.web01.motd=one", "node.web01.sshd=two")
	again.Keeps(t, "node.web01.motd")
}

// A bucket put back to an older state, as from a backup: made at the same time,
// but behind what the node knows.
func TestStreamPutBackKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("old")); err != nil {
		t.Fatal(err)
	}
	entry, err := store.Get(t.Context(), "node.web01.motd")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := kvtest.Manager(t, srv).LoadStream("KV_MUSTER_MANIFESTS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Information()
	if err != nil {
		t.Fatal(err)
	}
	newer := entry
	newer.Revision, newer.Time, newer.Value = 100, entry.Time.Add(time.Hour), []byte("new")
	o := watch.Options{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond}
	w := kvtest.WatchSince(t, kvtest.Bind(t, srv), o, model.Memory{Entries: map[string]model.Entry{"node.web01.motd": newer}, Stream: info.Created})
	w.Keeps(t, "node.web01.motd")
	w.Has(t, "node.web01.motd=new")
}

func TestPurgedNameIsUnassigned(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, name := range []string{"motd", "sshd"} {
		if _, err := store.Put(t.Context(), "node.web01."+name, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: 10 * time.Millisecond, Gone: 20 * time.Millisecond})
	w.Synced(t)
	// An administrator's purge is not announced, and the newest message stays.
	purge(t, srv, "node.web01.sshd")
	if _, err := store.Put(t.Context(), "node.web01.cron", []byte("one")); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.cron=one", "node.web01.motd=one")
	// All gone at once is not how anybody unassigns.
	purge(t, srv, ">")
	w.Keeps(t, "node.web01.cron", "node.web01.motd")
	w.Has(t, "node.web01.cron=one", "node.web01.motd=one")
}

// TestOnlyKeyOfANodeIsPurged: the bucket still has keys of other nodes, so it did not lose its content.
func TestOnlyKeyOfANodeIsPurged(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, key := range []string{"node.web01.motd", "node.web02.motd"} {
		if _, err := store.Put(t.Context(), key, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: 10 * time.Millisecond, Gone: 20 * time.Millisecond})
	w.Has(t, "node.web01.motd=one")
	purge(t, srv, "node.web01.motd")
	unassigns(t, w, "node.web01.motd")
}

// TestRefilledBucketUnassignsNothing: an operator who restores an emptied bucket pushes the keys one by one.
func TestRefilledBucketUnassignsNothing(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"node.web02.motd", "group.all.motd", "node.web01.sshd"} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			put := func(key string) {
				t.Helper()
				if _, err := store.Put(t.Context(), key, []byte("one")); err != nil {
					t.Fatal(err)
				}
			}
			put("node.web01.motd")
			put("node.web02.motd")
			w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: 10 * time.Millisecond, Gone: time.Millisecond, GroupJitter: time.Millisecond})
			w.Has(t, "node.web01.motd=one")
			purge(t, srv, ">")
			put(first)
			w.Keeps(t, "node.web01.motd")
			audits := map[time.Time]bool{}
			kvtest.Eventually(t, "12 audits", func() (bool, string) {
				_, state := w.Entries()
				audits[state.At] = true

				return len(audits) > 12, fmt.Sprint(len(audits))
			})
			if entries, _ := w.Entries(); entries["node.web01.motd"].Revision != 1 {
				t.Errorf("active: %v", entries)
			}
		})
	}
}

// TestKeyIsPurgedBeforeTheStart: the bucket still has another older or known key, so it did not lose its content.
func TestKeyIsPurgedBeforeTheStart(t *testing.T) {
	t.Parallel()
	for _, keys := range [][]string{{"node.web02.motd", "node.web01.motd"}, {"node.web01.motd", "node.web01.sshd"}} {
		srv, store := kvtest.New(t)
		for _, key := range keys {
			if _, err := store.Put(t.Context(), key, []byte("one")); err != nil {
				t.Fatal(err)
			}
		}
		o := watch.Options{Node: "web01", Audit: 10 * time.Millisecond, Gone: 20 * time.Millisecond}
		before := kvtest.Watch(t, kvtest.Bind(t, srv), o)
		before.Synced(t)
		memory := before.Memory()
		purge(t, srv, "node.web01.motd")
		unassigns(t, kvtest.WatchSince(t, kvtest.Bind(t, srv), o, memory), "node.web01.motd")
	}
}

// unassigns waits until a key has no active and no stored assignment.
func unassigns(t *testing.T, w *kvtest.Watching, key string) {
	t.Helper()
	kvtest.Eventually(t, key+" is unassigned", func() (bool, string) {
		entries, state := w.Entries()
		_, isActive := entries[key]

		return !state.At.IsZero() && !isActive && len(state.Kept) == 0, fmt.Sprint(entries, state)
	})
}

func TestWatchStartsWithoutAServer(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	srv.Stop()
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, RetryOnFailedConnect: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	node, err := kvtest.Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	last := model.Entry{Key: "node.web01.old", Family: "node.web01", Name: "old", Revision: 1, Value: []byte("one")}
	w := kvtest.WatchSince(t, node, watch.Options{Node: "web01", Audit: kvtest.Never, GroupJitter: time.Millisecond, Retry: time.Millisecond},
		model.Memory{Entries: map[string]model.Entry{"node.web01.old": last, "group.db.old": {Key: "group.db.old", Family: "group.db", Name: "old"}}})
	kvtest.Eventually(t, "the failure is known", func() (bool, string) {
		_, state := w.Entries()
		return state.Err != nil && state.At.IsZero(), fmt.Sprintf("%+v", state)
	})
	w.Has(t, "node.web01.old=one")
	srv.Start(t)
	// Values of an unknown bucket stay until the identity is settled.
	w.Has(t, "node.web01.motd=two", "node.web01.old=one")
	w.Keeps(t, "node.web01.old")
}

func TestWatchRefusesBadNames(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for _, o := range []watch.Options{{}, {Node: "web.01"}, {Node: "*"}, {Node: "web01", Groups: []string{"a.b"}}, {Node: "web01", Groups: []string{""}}} {
		if err := watch.New(store.Store, o).Run(t.Context(), model.Memory{}, func([]string) {}); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("watch of %q in %q = %v", o.Node, o.Groups, err)
		}
	}
}

func TestWatchEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	store := kvtest.Bind(t, srv)
	w := watch.New(store.Store, watch.Options{Node: "web01", Audit: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	woken := make(chan struct{})
	ended := make(chan error, 1)
	wake := sync.OnceFunc(func() { close(woken) })
	go func() { ended <- w.Run(t.Context(), model.Memory{}, func([]string) { wake() }) }()
	kvtest.Receive(t, woken)
	store.Conn.Close()
	if err := <-ended; err == nil {
		t.Error("no error from a watch on a closed connection")
	}
}

// purge removes keys as an administrator would, without a mark.
func purge(t *testing.T, srv *natstest.Server, key string) {
	t.Helper()
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "KV_MUSTER_MANIFESTS")
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.MUSTER_MANIFESTS."+key)); err != nil {
		t.Fatal(err)
	}
}

// remembered returns what a watch remembers, by way of the disk.
func remembered(t *testing.T, w *kvtest.Watching) model.Memory {
	t.Helper()
	data, err := json.Marshal(w.Memory())
	if err != nil {
		t.Fatal(err)
	}
	var m model.Memory
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}

	return m
}
