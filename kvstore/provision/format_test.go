package provision_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/testing/kvtest"
)

// setFormat gives a stream another format, none for the empty one.
func setFormat(format string) func(*api.StreamConfig) {
	return func(c *api.StreamConfig) {
		if c.Metadata[kvstore.FormatKey] = format; format == "" {
			delete(c.Metadata, kvstore.FormatKey)
		}
	}
}

func unknownFormat(t *testing.T, what string, err error) {
	t.Helper()
	for _, want := range []string{"KV_MUSTER_MANIFESTS has format 99", "knows format 2", "use the version of muster"} {
		if !errors.Is(err, kvstore.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q in it", what, err, want)
		}
	}
}

// TestUnknownFormatIsNotProvisioned: no stream is changed, not even one of the
// known format.
func TestUnknownFormatIsNotProvisioned(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Update(t, m, "KV_MUSTER_MANIFESTS", setFormat("99"))
	kvtest.Update(t, m, "KV_MUSTER_DATA", func(c *api.StreamConfig) { c.Duplicates = time.Second })
	before := kvtest.Config(t, m, "KV_MUSTER_MANIFESTS")
	_, err := store.Apply(t.Context(), provision.Options{})
	unknownFormat(t, "apply", err)
	_, err = store.Plan(t.Context(), provision.Options{})
	unknownFormat(t, "plan", err)
	unknownFormat(t, "check", store.Check(t.Context()))
	if after := kvtest.Config(t, m, "KV_MUSTER_MANIFESTS"); after.Metadata[kvstore.FormatKey] != "99" || after.Description != before.Description {
		t.Errorf("manifests were changed: %+v", after)
	}
	if c := kvtest.Config(t, m, "KV_MUSTER_DATA"); c.Duplicates != time.Second {
		t.Errorf("data were changed: %s", c.Duplicates)
	}
}

// TestMissingFormatIsAdded adds a format to older buckets, which work without it.
func TestMissingFormatIsAdded(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Update(t, m, "MUSTER_REPORTS", setFormat(""))
	other := kvtest.Bind(t, srv)
	if err := other.Check(t.Context()); !errors.Is(err, provision.ErrDiffers) || !strings.Contains(err.Error(), "format is none, must be 1") {
		t.Errorf("check = %v", err)
	}
	if err := kvtest.Publish(t.Context(), other, kvtest.Outgoing("web01", model.KindRun, "stable", 1)); err != nil {
		t.Errorf("publish = %v", err)
	}
	done, err := store.Apply(t.Context(), provision.Options{})
	if err != nil || len(done) != 1 || done[0].String() != "change MUSTER_REPORTS: format is none, must be 1" {
		t.Errorf("apply = %v, %v", done, err)
	}
	if c := kvtest.Config(t, m, "MUSTER_REPORTS"); c.Metadata[kvstore.FormatKey] != "1" {
		t.Errorf("metadata = %v", c.Metadata)
	}
}

// TestNodeRefusesAnUnknownFormat at binding, and after the bucket changed during an outage. It reads and
// writes nothing; its assignments stay active.
func TestNodeRefusesAnUnknownFormat(t *testing.T) {
	t.Parallel()
	srv, admin := kvtest.New(t)
	if _, err := admin.Put(t.Context(), "node.web01.motd", []byte("one")); err != nil {
		t.Fatal(err)
	}
	before := kvtest.Watch(t, kvtest.Bind(t, srv), watch.Options{Node: "web01", Retry: time.Millisecond, GroupJitter: time.Millisecond})
	before.Has(t, "node.web01.motd=one")
	kvtest.Update(t, kvtest.Manager(t, srv), "KV_MUSTER_MANIFESTS", setFormat("99"))

	node, err := kvtest.Of(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	after := kvtest.Watch(t, node, watch.Options{Node: "web01", Retry: time.Millisecond})
	kvtest.Eventually(t, "the watch refuses", func() (bool, string) {
		_, state := after.Entries()
		return errors.Is(state.Err, kvstore.ErrFormat), ""
	})
	after.Has(t)
	_, err = node.Get(t.Context(), "node.web01.motd")
	unknownFormat(t, "get", err)
	_, err = node.Put(t.Context(), "node.web01.motd", []byte("two"))
	unknownFormat(t, "put", err)
	_, err = node.List(t.Context())
	unknownFormat(t, "list", err)
	unknownFormat(t, "state", node.PutState(t.Context(), model.NodeState{Node: "web01"}, 0))
	unknownFormat(t, "report", kvtest.Publish(t.Context(), node, kvtest.Outgoing("web01", model.KindRun, "stable", 1)))
	unknownFormat(t, "command", node.PutCommand(t.Context(), "node.web01", "1", nil, time.Minute))
	unknownFormat(t, "registration", node.Register(t.Context(), registration.Registration{Cluster: "c", ProtocolName: "p", Service: "s", Node: "web01", Address: "192.0.2.1", Port: 1, Priority: 1, TTL: model.TTL(time.Minute)}))

	srv.Restart(t)
	kvtest.Eventually(t, "the running watch refuses", func() (bool, string) {
		_, state := before.Entries()
		return errors.Is(state.Err, kvstore.ErrFormat), ""
	})
	before.Has(t, "node.web01.motd=one")
}
