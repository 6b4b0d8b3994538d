package kvstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

func TestServersThatAreTooOld(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"2.9.10": false, "2.10.22": false, "2.10.99": false, "1.4.1": false, "2.2.0-beta": false,
		"2.11.0": true, "2.11.0-RC.1": true, "2.15.2": true, "3.0.0": true, "2.100.1": true, "": true, "dev": true,
	} {
		err := kvstore.CheckServer(version)
		if (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
		if err != nil && (!errors.Is(err, kvstore.ErrServer) || !strings.Contains(err.Error(), version+", muster needs 2.11 or later")) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

// A server that is too old is neither read nor written, until there is another.
func TestAnOldServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc, err := kvstore.Dial(t.Context(), kvstore.ConnectOptions{Servers: []string{srv.Aged(t, "2.9.10")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	old, err := kvtest.Of(nc, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Apply(t.Context(), provision.Options{}); !errors.Is(err, kvstore.ErrServer) {
		t.Errorf("provision = %v", err)
	}
	if _, err := old.Put(t.Context(), "node.web01.motd", []byte("x")); !errors.Is(err, kvstore.ErrServer) {
		t.Errorf("put = %v", err)
	}
	if _, err := old.State(t.Context(), "web01"); !errors.Is(err, kvstore.ErrServer) {
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
