package kvtest

import (
	"testing"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/natstest"
)

// Manager returns what an administrator manages streams by.
func Manager(t *testing.T, srv *natstest.Server, opts ...nats.Option) *jsm.Manager {
	t.Helper()
	m, err := jsm.New(srv.Connect(t, opts...))
	if err != nil {
		t.Fatal(err)
	}

	return m
}

// Config returns the configuration of a stream.
func Config(t *testing.T, m *jsm.Manager, name string) api.StreamConfig {
	t.Helper()
	s, err := m.LoadStream(name)
	if err != nil {
		t.Fatal(err)
	}

	return s.Configuration()
}

// Update changes the configuration of a stream.
func Update(t *testing.T, m *jsm.Manager, name string, change func(*api.StreamConfig)) {
	t.Helper()
	s, err := m.LoadStream(name)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Configuration()
	change(&c)
	if err := s.UpdateConfiguration(c); err != nil {
		t.Fatal(err)
	}
}

// Recreate removes a stream and makes it again, with another configuration.
func Recreate(t *testing.T, m *jsm.Manager, name string, change func(*api.StreamConfig)) {
	t.Helper()
	c := Config(t, m, name)
	if err := m.DeleteStream(name); err != nil {
		t.Fatal(err)
	}
	change(&c)
	if _, err := m.NewStreamFromDefault(name, c); err != nil {
		t.Fatal(err)
	}
}
