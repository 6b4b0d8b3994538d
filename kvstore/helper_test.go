package kvstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/natstest"
)

// deadline is how long a test waits for what must come; it is generous because
// the machine may be busy.
const deadline = 60 * time.Second

// newStore gives the store of a provisioned server.
func newStore(t testing.TB) (*natstest.Server, *kvstore.Store) {
	t.Helper()
	srv := natstest.Start(t)
	store, err := kvstore.New(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), kvstore.Options{}); err != nil {
		t.Fatal(err)
	}

	return srv, store
}

// bind gives a further store of a server on a connection of its own.
func bind(t testing.TB, srv *natstest.Server, opts ...nats.Option) *kvstore.Store {
	t.Helper()

	return bindTo(t, srv.Connect(t, opts...))
}

// bindTo gives the store of a connection, which has all that it needs.
func bindTo(t testing.TB, nc *nats.Conn) *kvstore.Store {
	t.Helper()
	store, err := kvstore.New(nc, "")
	if err == nil {
		err = store.Check(t.Context())
	}
	if err != nil && !errors.Is(err, kvstore.ErrDiffers) {
		t.Fatal(err)
	}

	return store
}

// publish stores one report.
func publish(ctx context.Context, s *kvstore.Store, o model.Report) error {
	_, err := s.PublishReports(ctx, []model.Report{o})

	return err
}

// factsOf gives the facts of a node as any client of NATS sees them.
func factsOf(t testing.TB, nc *nats.Conn, node string) string {
	t.Helper()
	e, err := plainKV(t, nc, "MUSTER_NODES").Get(t.Context(), node+".facts")
	if err != nil {
		return err.Error()
	}

	return string(e.Value())
}

// plainKV gives a bucket as any client of NATS sees it.
func plainKV(t testing.TB, nc *nats.Conn, bucket string) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), bucket)
	if err != nil {
		t.Fatal(err)
	}

	return kv
}

// eventually waits until a condition holds, and fails the test when it does not
// come; the condition says what it saw.
func eventually(t testing.TB, what string, condition func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: still not after %s: %s", what, deadline, seen)
		case <-tick.C:
		}
	}
}

// noConsumers tells whether a stream has no consumer, and which it has.
func noConsumers(t testing.TB, m *jsm.Manager, stream string) (bool, string) {
	t.Helper()
	names, err := m.ConsumerNames(stream)
	if err != nil {
		t.Fatal(err)
	}

	return len(names) == 0, fmt.Sprint(names)
}
