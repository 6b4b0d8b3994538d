package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// silent is a fleet whose server announces nothing, and a node that audits constantly and so finds all
// changes.
func silent(t *testing.T, o watch.Options) (*natstest.Server, *kvtest.Store, *kvtest.Watching) {
	t.Helper()
	srv, store := kvtest.New(t)
	node := kvtest.Bind(t, srv)
	kvtest.Update(t, kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
	o.Node, o.Audit, o.GroupJitter, o.Retry = "web01", 5*time.Millisecond, time.Millisecond, time.Millisecond
	w := kvtest.Watch(t, node, o)
	w.Synced(t)

	return srv, store, w
}

// Whatever a client of NATS writes is found without an announcement, with any
// headers that the server accepts, and also when much was written at once.
func TestWhateverIsPutIsFoundOnTheAudit(t *testing.T) {
	t.Parallel()
	srv, _, w := silent(t, watch.Options{})
	nc := srv.Connect(t)
	kv := kvtest.PlainKV(t, nc, "MUSTER_MANIFESTS")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, last := t.Context(), uint64(0)
	publish := func(value string, opts ...jetstream.PublishOpt) func() error {
		return func() error {
			_, err := js.Publish(ctx, "$KV.MUSTER_MANIFESTS.node.web01.a", []byte(value), opts...)
			return err
		}
	}
	with := func(value string, headers nats.Header) func() error {
		return func() error {
			_, err := js.PublishMsg(ctx, &nats.Msg{Subject: "$KV.MUSTER_MANIFESTS.node.web01.a", Data: []byte(value), Header: headers})
			return err
		}
	}
	revision := func(n uint64, err error) error {
		last = n
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"create", func() error { return revision(kv.Create(ctx, "node.web01.a", []byte("1"))) }, []string{"node.web01.a=1"}},
		{"update", func() error { return revision(kv.Update(ctx, "node.web01.a", []byte("2"), last)) }, []string{"node.web01.a=2"}},
		{"put", func() error { return revision(kv.Put(ctx, "node.web01.a", []byte("3"))) }, []string{"node.web01.a=3"}},
		{"delete", func() error { return kv.Delete(ctx, "node.web01.a") }, nil},
		{"create again", func() error { return revision(kv.Create(ctx, "node.web01.a", []byte("4"))) }, []string{"node.web01.a=4"}},
		{"delete once more", func() error { return kv.Delete(ctx, "node.web01.a") }, nil},
		{"create once more", func() error { return revision(kv.Create(ctx, "node.web01.a", []byte("5"))) }, []string{"node.web01.a=5"}},
		{"message id", publish("6", jetstream.WithMsgID("6")), []string{"node.web01.a=6"}},
		{"expected stream", publish("7", jetstream.WithExpectStream("KV_MUSTER_MANIFESTS")), []string{"node.web01.a=7"}},
		{"expected message id", publish("8", jetstream.WithExpectLastMsgID("")), []string{"node.web01.a=8"}},
		{"a header", with("9", nats.Header{"X": {"sub"}}), []string{"node.web01.a=9"}},
		{"two at once", func() error {
			_, err := kv.Put(ctx, "node.web01.b", []byte("1"))
			return errors.Join(err, revision(kv.Put(ctx, "node.web01.a", []byte("10"))))
		}, []string{"node.web01.a=10", "node.web01.b=1"}},
		{"both deleted", func() error { return errors.Join(kv.Delete(ctx, "node.web01.b"), kv.Delete(ctx, "node.web01.a")) }, nil},
		{"both back", func() error {
			_, err := kv.Put(ctx, "node.web01.b", []byte("2"))
			return errors.Join(err, revision(kv.Put(ctx, "node.web01.a", []byte("11"))))
		}, []string{"node.web01.a=11", "node.web01.b=2"}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		t.Log(step.name)
		w.Has(t, step.want...)
	}
}

// More keys than one answer of a direct get of many may have.
func TestFiveThousandKeysInAFamily(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	const many = 5000
	for i := range many {
		if _, err := js.PublishAsync(fmt.Sprintf("$KV.MUSTER_MANIFESTS.group.all.m%04d", i), []byte("x"), jetstream.WithStallWait(kvtest.Deadline)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	listed, err := store.Subjects(t.Context(), "KV_MUSTER_MANIFESTS", "$KV.MUSTER_MANIFESTS.group.all.>")
	if err != nil || len(listed.Subjects) != many || listed.Last != many {
		t.Errorf("%d of %d listed, %v", len(listed.Subjects), listed.Last, err)
	}
	own := watch.New(kvtest.Bind(t, srv).Store, watch.Options{Node: "web01", GroupJitter: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- own.Run(ctx, model.Memory{}, func([]string) {}) }()
	kvtest.Eventually(t, "all of them", func() (bool, string) {
		entries, state := own.Entries()
		return len(entries) == many && state.Complete(), fmt.Sprint(len(entries), state)
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A purged key stays in force until it has been missing for a while.
func TestPurgedKeyStaysUntilItIsMissingTwice(t *testing.T) {
	t.Parallel()
	srv, store, w := silent(t, watch.Options{Gone: kvtest.Never})
	for _, name := range []string{"motd", "sshd"} {
		if _, err := store.Put(t.Context(), "node.web01."+name, []byte("one")); err != nil {
			t.Fatal(err)
		}
	}
	w.Has(t, "node.web01.motd=one", "node.web01.sshd=one")
	purge(t, srv, "node.web01.motd")
	_, before := w.Entries()
	for range 2 {
		kvtest.Eventually(t, "an audit", func() (bool, string) {
			_, state := w.Entries()
			return state.At.After(before.At), fmt.Sprint(state)
		})
		_, before = w.Entries()
	}
	w.Has(t, "node.web01.motd=one", "node.web01.sshd=one")
	if len(before.Kept) > 0 {
		t.Errorf("kept: %v", before.Kept)
	}
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.motd=two", "node.web01.sshd=one")
}

// Clients cannot change the source of a message with headers of the server: the value is refused, and known
// values of others stay right.
func TestPutWithHeadersOfTheServer(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]nats.Header{
		"origin":      {"Nats-Stream": {"EVIL"}, "Nats-Subject": {"$KV.MUSTER_MANIFESTS.node.web01.other"}, "Nats-Sequence": {"999999"}, "Nats-Time-Stamp": {"2001-01-01T00:00:00Z"}},
		"stream":      {"Nats-Stream": {"KV_MUSTER_MANIFESTS"}},
		"not found":   {"Status": {"404"}},
		"nobody":      {"Status": {"503"}},
		"batch ended": {"Status": {"204"}},
		"deletion":    {"Status": {"404"}, "KV-Operation": {"DEL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			node := kvtest.Bind(t, srv)
			own := watch.New(node.Store, watch.Options{Node: "web01", Audit: 10 * time.Millisecond, Gone: time.Millisecond, GroupJitter: time.Millisecond, Retry: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- own.Run(ctx, model.Memory{}, func([]string) {}) }()
			put := func(key string) uint64 {
				t.Helper()
				n, err := store.Put(t.Context(), key, []byte("one"))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			has := func(key string, revision uint64) {
				t.Helper()
				kvtest.Eventually(t, key, func() (bool, string) {
					entries, state := own.Entries()
					return entries[key].Revision == revision && state.Err == nil && len(state.Kept) == 0, fmt.Sprintf("%+v %+v", entries, state)
				})
			}
			has("node.web01.motd", 0)
			has("node.web01.motd", put("node.web01.motd"))
			js, err := jetstream.New(srv.Connect(t))
			if err != nil {
				t.Fatal(err)
			}
			// Empty, as the client takes for a status.
			ack, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "$KV.MUSTER_MANIFESTS.node.web01.motd", Header: header})
			if err != nil {
				t.Fatal(err)
			}
			has("node.web01.motd", ack.Sequence)
			has("node.web01.later", put("node.web01.later"))
			e, err := own.Read(t.Context(), "node.web01.motd", ack.Sequence)
			if err != nil || e.Refused != kvstore.ErrServerHeaders.Error() || e.Deleted || e.Revision != ack.Sequence {
				t.Errorf("read: %+v, %v", e, err)
			}
			if node.Refused() == 0 {
				t.Error("not counted")
			}
			has("node.web01.motd", put("node.web01.motd"))
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A false announcement changes nothing, and holds nothing up for good.
func TestFalseAnnouncements(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if _, err := store.Put(t.Context(), "node.web01.motd", []byte("one")); err != nil {
		t.Fatal(err)
	}
	w := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Audit: kvtest.Never})
	w.Synced(t)
	nc := srv.Connect(t)
	for _, key := range []string{"node.web01.motd", "node.web01.none", "node.web01.>", "node.web01.*"} {
		for _, sequence := range []string{"999999", "0", "-1", "x", "1"} {
			if err := nc.PublishMsg(&nats.Msg{Subject: "muster.changed." + key, Header: nats.Header{"Nats-Sequence": {sequence}, "KV-Operation": {"DEL"}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: "muster.changed.node.web01.motd", Header: nats.Header{"Nats-Sequence": {"999999"}}}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), "node.web01.sshd", []byte("two")); err != nil {
		t.Fatal(err)
	}
	w.Has(t, "node.web01.motd=one", "node.web01.sshd=two")
	if _, state := w.Entries(); len(state.Kept) > 0 || len(state.Invalid) > 0 || state.Err != nil {
		t.Errorf("%+v", state)
	}
}
