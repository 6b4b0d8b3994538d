package kvtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/natstest"
)

// Deadline is how long a test waits for what must come; it is generous because
// the machine may be busy.
const Deadline = 3 * time.Minute

// New returns the store of a provisioned server.
func New(t testing.TB) (*natstest.Server, *Store) {
	t.Helper()

	return NewWith(t, provision.Options{})
}

// NewWith returns the store of a server that is provisioned with options.
func NewWith(t testing.TB, o provision.Options) (*natstest.Server, *Store) {
	t.Helper()
	srv := natstest.Start(t)
	store, err := Of(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), o); err != nil {
		t.Fatal(err)
	}

	return srv, store
}

// InBubble returns a provisioned server in a bubble of testing/synctest, its store, and
// what stops both, which must be called before the bubble ends.
func InBubble(t testing.TB) (srv *natstest.Bubble, store *Store, stop func()) {
	t.Helper()
	srv = natstest.StartBubble(t)
	nc := srv.Connect(t)
	store, err := Of(nc, "")
	if err == nil {
		_, err = store.Apply(t.Context(), provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}

	return srv, store, func() {
		nc.Close()
		srv.Stop()
	}
}

// Bind returns another store of a server on a new connection.
func Bind(t testing.TB, srv *natstest.Server, opts ...nats.Option) *Store {
	t.Helper()

	return BindTo(t, srv.Connect(t, opts...))
}

// BindTo returns the store of a connection, which has all that it needs.
func BindTo(t testing.TB, nc *nats.Conn) *Store {
	t.Helper()
	store, err := Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	// A stream of a cluster may have no leader for a moment.
	Eventually(t, "checked", func() (bool, string) {
		err := store.Check(t.Context())
		return err == nil || errors.Is(err, provision.ErrDiffers), fmt.Sprint(err)
	})

	return store
}

// Publish stores one report.
func Publish(ctx context.Context, s *Store, o model.Report) error {
	_, err := s.PublishReports(ctx, []model.Report{o})

	return err
}

// FactsOf returns the facts of a node as any client of NATS sees them.
func FactsOf(t testing.TB, nc *nats.Conn, node string) string {
	t.Helper()
	e, err := PlainKV(t, nc, "MUSTER_NODES").Get(t.Context(), node+".facts")
	if err != nil {
		return err.Error()
	}

	return string(e.Value())
}

// PlainKV returns a bucket as any client of NATS sees it.
func PlainKV(t testing.TB, nc *nats.Conn, bucket string) jetstream.KeyValue {
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

// Eventually waits until a condition holds, and fails the test after a timeout. The condition returns the
// state it saw.
func Eventually(t testing.TB, what string, condition func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Deadline)
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
			t.Fatalf("%s: still not after %s: %s", what, Deadline, seen)
		case <-tick.C:
		}
	}
}

// Receive returns the next value of a channel, or the zero value once it is closed. Without one within Deadline the test
// fails.
func Receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(Deadline):
		t.Fatalf("nothing received within %s", Deadline)
		panic("unreachable")
	}
}

// NoConsumers reports whether a stream has no consumer, and which it has.
func NoConsumers(m *jsm.Manager, stream string) (bool, string) {
	names, err := m.ConsumerNames(stream)

	return err == nil && len(names) == 0, fmt.Sprint(names, err)
}
