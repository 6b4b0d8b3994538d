package natstest_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/natstest"
)

func TestRestartKeepsPortAndStore(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	url := srv.URL()
	js := jetStream(t, srv.Connect(t))
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "key", "value"); err != nil {
		t.Fatal(err)
	}

	srv.Restart(t)

	if srv.URL() != url {
		t.Errorf("url after restart = %s, was %s", srv.URL(), url)
	}
	kv, err = jetStream(t, srv.Connect(t)).KeyValue(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := kv.Get(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(entry.Value()); got != "value" {
		t.Errorf("value after restart = %q", got)
	}
}

func TestStoppedServerRefuses(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	srv.Stop()
	srv.Stop()
	if nc, err := nats.Connect(srv.URL()); err == nil {
		nc.Close()
		t.Fatal("connected to a stopped server")
	}
}

func TestConfigGivesPermissions(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.WithConfig(`
		port: 4222
		jetstream: {store_dir: "/nowhere"}
		authorization: {users: [{user: a, password: b, permissions: {publish: ["ok"], subscribe: ["ok", "_INBOX.>"]}}]}
	`))
	if nc, err := nats.Connect(srv.URL()); err == nil {
		nc.Close()
		t.Fatal("connected without credentials")
	}
	refused := make(chan error, 1)
	nc := srv.Connect(t, nats.UserInfo("a", "b"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	if err := nc.Publish("other", nil); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Error("a subject without permission:", err)
	}
}

func jetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}

	return js
}
