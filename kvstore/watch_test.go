package kvstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/natstest"
)

// never is longer than any test: what must not be the reason for a success.
const never = 24 * time.Hour

// watching is a watch that runs.
type watching struct {
	*kvstore.Watch
	stop func()

	mu    sync.Mutex
	woken []string
	wakes int
}

func watch(t testing.TB, s *kvstore.Store, o kvstore.WatchOptions) *watching {
	t.Helper()
	w, err := kvstore.NewWatch(s, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	running := &watching{Watch: w}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, running.wake) }()
	running.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("watch of %s ended with %v", o.Node, err)
		}
	})
	t.Cleanup(running.stop)

	return running
}

func (w *watching) wake(keys []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wakes++
	w.woken = append(w.woken, keys...)
}

// has waits until the watch has exactly these "key=value" in force.
func (w *watching) has(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, "entries in force", func() (bool, string) {
		entries, state := w.Entries()
		var got []string
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			got = append(got, key+"="+string(entries[key].Value))
		}

		return slices.Equal(got, want), fmt.Sprintf("%v, %+v, want %v", got, state, want)
	})
}

// synced waits until the watch knows everything, and its keys are listed.
func (w *watching) synced(t testing.TB) {
	t.Helper()
	eventually(t, "first listing", func() (bool, string) {
		_, state := w.Entries()
		return !state.At.IsZero() && !state.Listed.IsZero(), fmt.Sprintf("%+v", state)
	})
}

// wokenBy waits until the watch has woken its listener for a key.
func (w *watching) wokenBy(t testing.TB, key string) {
	t.Helper()
	eventually(t, "wake", func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()

		return slices.Contains(w.woken, key), fmt.Sprint(w.woken)
	})
}

func TestRawPutIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	srv, _ := newStore(t)
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", Groups: []string{"web"}, Audit: never, ListEvery: never})
	w.synced(t)
	kv := plainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	revision, err := kv.PutString(t.Context(), "node.web01.motd", "one")
	if err != nil {
		t.Fatal(err)
	}
	w.has(t, "node.web01.motd=one")
	w.wokenBy(t, "node.web01.motd")
	entries, _ := w.Entries()
	if e := entries["node.web01.motd"]; e.Revision != revision || e.Family != "node.web01" || e.Name != "motd" || e.Time.IsZero() {
		t.Errorf("entry = %+v", e)
	}
	for i, end := range []func(context.Context, string, ...jetstream.KVDeleteOpt) error{kv.Delete, kv.Purge} {
		if err := end(t.Context(), "node.web01.motd"); err != nil {
			t.Fatal(err)
		}
		w.has(t)
		if _, err := kv.PutString(t.Context(), "node.web01.motd", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		w.has(t, fmt.Sprintf("node.web01.motd=%d", i))
	}
}

func TestFamiliesOfANode(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", Groups: []string{"web", "db"}, Audit: never, GroupJitter: time.Millisecond})
	w.synced(t)
	for _, family := range []string{"node.web01", "node.web02", "node.web01x", "group.web", "group.db", "group.mail", "group.all"} {
		if _, err := store.Put(t.Context(), family+".motd", []byte(family)); err != nil {
			t.Fatal(err)
		}
	}
	w.has(t, "group.all.motd=group.all", "group.db.motd=group.db", "group.web.motd=group.web", "node.web01.motd=node.web01")
	for _, family := range []string{"group.web", "node.web01"} {
		if _, err := store.Delete(t.Context(), family+".motd"); err != nil {
			t.Fatal(err)
		}
	}
	w.has(t, "group.all.motd=group.all", "group.db.motd=group.db")
}

func TestWhatIsThereIsKnownAtStart(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	for i := range 3 {
		if _, err := store.Put(t.Context(), "group.all."+fmt.Sprint("m", i), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	kv := plainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	for _, key := range []string{"node.web01.raw1", "node.web01.raw2", "group.all.raw3", "group.all.m1", "node.web01._note", "node.web01.gone"} {
		if _, err := kv.PutString(t.Context(), key, "raw"); err != nil {
			t.Fatal(err)
		}
	}
	if err := kv.Delete(t.Context(), "node.web01.gone"); err != nil {
		t.Fatal(err)
	}
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", Audit: never, ListEvery: never, GroupJitter: time.Millisecond})
	w.has(t, "group.all.m0=0", "group.all.m1=raw", "group.all.m2=2", "group.all.raw3=raw", "node.web01.raw1=raw", "node.web01.raw2=raw")
	w.synced(t)
	if ok, names := noConsumers(t, manager(t, srv), "KV_MUSTER_MANIFESTS"); !ok {
		t.Errorf("consumers left: %s", names)
	}
}

func TestWakesOnceWhenNothingIsAssigned(t *testing.T) {
	t.Parallel()
	srv, _ := newStore(t)
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", Audit: time.Millisecond, GroupJitter: time.Millisecond})
	w.synced(t)
	first, _ := w.Entries()
	for range 3 {
		_, before := w.Entries()
		eventually(t, "audits", func() (bool, string) {
			_, state := w.Entries()
			return state.At.After(before.At), fmt.Sprint(state)
		})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(first) != 0 || w.wakes != 1 || len(w.woken) != 0 {
		t.Errorf("%d entries, %d wakes for %v", len(first), w.wakes, w.woken)
	}
}

// What was published while the node was away was never announced to it.
func TestLostAnnouncements(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options kvstore.WatchOptions
		lose    func(*testing.T, *natstest.Server, *kvstore.Store) (restore func())
	}{
		"found on the audit": {
			options: kvstore.WatchOptions{Audit: 10 * time.Millisecond, ListEvery: never},
			// Without republish all announcements are lost, though the node is connected.
			lose: func(t *testing.T, srv *natstest.Server, _ *kvstore.Store) func() {
				update(t, manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
				return func() {}
			},
		},
		"found after a reconnect": {
			options: kvstore.WatchOptions{Audit: never, ListEvery: never, GroupJitter: time.Millisecond},
			lose: func(t *testing.T, srv *natstest.Server, node *kvstore.Store) func() {
				update(t, manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
				return func() {
					if err := node.Conn().ForceReconnect(); err != nil {
						t.Error(err)
					}
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := newStore(t)
			put := func(family, name, value string) {
				t.Helper()
				if _, err := store.Put(t.Context(), model.Key(family, name), []byte(value)); err != nil {
					t.Fatal(err)
				}
			}
			put("node.web01", "motd", "one")
			put("node.web01", "gone", "one")
			put("group.web", "sshd", "one")
			node := bind(t, srv)
			tt.options.Node, tt.options.Groups = "web01", []string{"web"}
			w := watch(t, node, tt.options)
			w.synced(t)
			restore := tt.lose(t, srv, node)
			put("node.web01", "motd", "two")
			put("node.web01", "new", "two")
			put("group.web", "sshd", "two")
			if _, err := store.Delete(t.Context(), "node.web01.gone"); err != nil {
				t.Fatal(err)
			}
			kv := plainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
			if _, err := kv.PutString(t.Context(), "group.all.raw", "two"); err != nil {
				t.Fatal(err)
			}
			restore()
			w.has(t, "group.all.raw=two", "group.web.sshd=two", "node.web01.motd=two", "node.web01.new=two")
		})
	}
}

func TestUnindexedNamesAreFoundByTheListing(t *testing.T) {
	t.Parallel()
	srv, _ := newStore(t)
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", Audit: never, ListEvery: 10 * time.Millisecond, GroupJitter: time.Millisecond})
	w.synced(t)
	update(t, manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
	kv := plainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
	for _, key := range []string{"node.web01.a", "node.web01.b"} {
		if _, err := kv.PutString(t.Context(), key, "raw"); err != nil {
			t.Fatal(err)
		}
	}
	w.has(t, "node.web01.a=raw", "node.web01.b=raw")
	if err := kv.Delete(t.Context(), "node.web01.a"); err != nil {
		t.Fatal(err)
	}
	w.has(t, "node.web01.b=raw")
}

func TestIndexServesWithoutAConsumerToSpare(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.WithConfig(`accounts: {A: {jetstream: {max_consumers: 1}, users: [{user: a, password: a}]}}, no_auth_user: a`))
	store, err := kvstore.New(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), kvstore.Options{}); err != nil {
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
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", GroupJitter: time.Millisecond})
	w.has(t, "node.web01.motd=one")
	eventually(t, "the listing is refused", func() (bool, string) {
		_, state := w.Entries()
		return state.ListErr != nil && strings.Contains(state.ListErr.Error(), "consumer") && state.Err == nil, fmt.Sprintf("%+v", state)
	})
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.has(t, "node.web01.motd=two")
}

func TestStreamMadeAnewKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	for _, name := range []string{"motd", "sshd", "cron"} {
		if _, err := store.Put(t.Context(), "node.web01."+name, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	o := kvstore.WatchOptions{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond, Retry: time.Millisecond}
	w := watch(t, bind(t, srv), o)
	w.synced(t)
	all := []string{"node.web01.cron=one", "node.web01.motd=one", "node.web01.sshd=one"}
	w.has(t, all...)
	_, before := w.Entries()

	if err := manager(t, srv).DeleteStream("KV_MUSTER_MANIFESTS"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is noticed", func() (bool, string) {
		_, state := w.Entries()
		return errors.Is(state.Err, kvstore.ErrNotProvisioned), fmt.Sprintf("%+v", state)
	})
	w.has(t, all...)
	if _, err := store.Apply(t.Context(), kvstore.Options{}); err != nil {
		t.Fatal(err)
	}
	keys := []string{"node.web01.cron", "node.web01.motd", "node.web01.sshd"}
	w.keeps(t, keys...)
	w.has(t, all...)

	// The same sequence numbers come again, with other content: the new is in force,
	// the rest stays.
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.has(t, "node.web01.cron=one", "node.web01.motd=two", "node.web01.sshd=one")
	w.keeps(t, "node.web01.cron", "node.web01.sshd")
	if _, state := w.Entries(); state.Stream.Equal(before.Stream) || state.Err != nil {
		t.Errorf("state = %+v, was of stream %s", state, before.Stream)
	}
	if _, err := store.Delete(t.Context(), "node.web01.sshd"); err != nil {
		t.Fatal(err)
	}
	w.has(t, "node.web01.cron=one", "node.web01.motd=two")
	w.keeps(t, "node.web01.cron")

	// A node that starts again with what it knew keeps it too.
	w.stop()
	o.Last = remembered(t, w)
	o.ListEvery = 20 * time.Millisecond
	again := watch(t, bind(t, srv), o)
	again.synced(t)
	again.keeps(t, "node.web01.cron")
	again.has(t, "node.web01.cron=one", "node.web01.motd=two")
	// In its own stream a name that is gone is unassigned; only the listing tells.
	purge(t, srv, "node.web01.motd")
	again.has(t, "node.web01.cron=one")
	again.keeps(t, "node.web01.cron")
}

func TestNodeThatStartsAfterTheStreamWasMadeAnew(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("one")); err != nil {
		t.Fatal(err)
	}
	o := kvstore.WatchOptions{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond}
	w := watch(t, bind(t, srv), o)
	w.synced(t)
	w.stop()
	o.Last = remembered(t, w)
	if err := manager(t, srv).DeleteStream("KV_MUSTER_MANIFESTS"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), kvstore.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "node.web01.sshd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	again := watch(t, bind(t, srv), o)
	again.has(t, "node.web01.motd=one", "node.web01.sshd=two")
	again.keeps(t, "node.web01.motd")
}

// A bucket put back to an older state, as from a backup: made at the same time,
// but behind what the node knows.
func TestStreamPutBackKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("old")); err != nil {
		t.Fatal(err)
	}
	entry, err := store.Get(t.Context(), "node.web01.motd")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := manager(t, srv).LoadStream("KV_MUSTER_MANIFESTS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Information()
	if err != nil {
		t.Fatal(err)
	}
	newer := entry
	newer.Revision, newer.Time, newer.Value = 100, entry.Time.Add(time.Hour), []byte("new")
	o := kvstore.WatchOptions{Node: "web01", Audit: 10 * time.Millisecond, GroupJitter: time.Millisecond, Last: kvstore.Memory{Entries: map[string]model.Entry{"node.web01.motd": newer}, Stream: info.Created}}
	w := watch(t, bind(t, srv), o)
	w.keeps(t, "node.web01.motd")
	w.has(t, "node.web01.motd=new")
}

func TestPurgedNameIsUnassigned(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	for _, name := range []string{"motd", "sshd"} {
		if _, err := store.Put(t.Context(), "node.web01."+name, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	w := watch(t, bind(t, srv), kvstore.WatchOptions{Node: "web01", Audit: 10 * time.Millisecond, ListEvery: never})
	w.synced(t)
	// An administrator's purge is not announced, and the newest message stays.
	purge(t, srv, "node.web01.sshd")
	if _, err := store.Put(t.Context(), "node.web01.cron", []byte("one")); err != nil {
		t.Fatal(err)
	}
	w.has(t, "node.web01.cron=one", "node.web01.motd=one")
	// All gone at once is not how anybody unassigns.
	purge(t, srv, ">")
	w.keeps(t, "node.web01.cron", "node.web01.motd")
	w.has(t, "node.web01.cron=one", "node.web01.motd=one")
}

func TestWatchStartsWithoutAServer(t *testing.T) {
	t.Parallel()
	srv, store := newStore(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	srv.Stop()
	nc, err := kvstore.Dial(t.Context(), kvstore.ConnectOptions{Servers: []string{srv.URL()}, RetryOnFailedConnect: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	node, err := kvstore.New(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	last := model.Entry{Key: "node.web01.old", Family: "node.web01", Name: "old", Revision: 1, Value: []byte("one")}
	w := watch(t, node, kvstore.WatchOptions{
		Node: "web01", Audit: never, GroupJitter: time.Millisecond, Retry: time.Millisecond, Last: kvstore.Memory{Entries: map[string]model.Entry{"node.web01.old": last, "group.db.old": {Key: "group.db.old", Family: "group.db", Name: "old"}}},
	})
	eventually(t, "the failure is known", func() (bool, string) {
		_, state := w.Entries()
		return state.Err != nil && state.At.IsZero(), fmt.Sprintf("%+v", state)
	})
	w.has(t, "node.web01.old=one")
	srv.Start(t)
	// What was known of a bucket that nobody remembers stays until it is settled.
	w.has(t, "node.web01.motd=two", "node.web01.old=one")
	w.keeps(t, "node.web01.old")
}

func TestWatchRefusesBadNames(t *testing.T) {
	t.Parallel()
	_, store := newStore(t)
	for _, o := range []kvstore.WatchOptions{{}, {Node: "web.01"}, {Node: "*"}, {Node: "web01", Groups: []string{"a.b"}}, {Node: "web01", Groups: []string{""}}} {
		if _, err := kvstore.NewWatch(store, o); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("watch of %q in %q = %v", o.Node, o.Groups, err)
		}
	}
}

func TestWatchEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	srv, _ := newStore(t)
	store := bind(t, srv)
	w, err := kvstore.NewWatch(store, kvstore.WatchOptions{Node: "web01", Audit: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan struct{})
	ended := make(chan error, 1)
	wake := sync.OnceFunc(func() { close(woken) })
	go func() { ended <- w.Run(t.Context(), func([]string) { wake() }) }()
	<-woken
	store.Conn().Close()
	if err := <-ended; err == nil {
		t.Error("no error from a watch on a closed connection")
	}
}

// keeps waits until the watch says that it keeps exactly these keys.
func (w *watching) keeps(t testing.TB, want ...string) {
	t.Helper()
	eventually(t, "keys kept", func() (bool, string) {
		_, state := w.Entries()
		return slices.Equal(state.Kept, want), fmt.Sprintf("%v, want %v", state, want)
	})
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

// remembered gives what a watch remembers, by way of the disk.
func remembered(t *testing.T, w *watching) kvstore.Memory {
	t.Helper()
	data, err := json.Marshal(w.Memory())
	if err != nil {
		t.Fatal(err)
	}
	var m kvstore.Memory
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}

	return m
}
