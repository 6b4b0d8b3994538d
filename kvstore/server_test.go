package kvstore_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// A server that is too old is neither read nor written, until there is another.
func TestAnOldServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.Aged(t, "2.9.10")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	old, err := kvtest.Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Apply(t.Context(), provision.Options{}); !errors.Is(err, connect.ErrServer) {
		t.Errorf("provision = %v", err)
	}
	if _, err := old.Put(t.Context(), "node.web01.motd", []byte("x")); !errors.Is(err, connect.ErrServer) {
		t.Errorf("put = %v", err)
	}
	if _, err := old.State(t.Context(), "web01"); !errors.Is(err, connect.ErrServer) {
		t.Errorf("read = %v", err)
	}
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	for name := range js.StreamNames(t.Context()).Name() {
		t.Errorf("there is a stream %s", name)
	}
}
