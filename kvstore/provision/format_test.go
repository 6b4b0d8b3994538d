package provision_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
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

// TestFirstFormatIsConverted: a bucket of the first format has an index beside each family. It is refused
// before the conversion, which removes only the indexes.
func TestFirstFormatIsConverted(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"1", ""} {
		t.Run("format "+format, func(t *testing.T) {
			t.Parallel()
			srv, admin := kvtest.New(t)
			m := kvtest.Manager(t, srv)
			kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_MANIFESTS")
			for _, key := range []string{"node.web01.motd", "node.web01._index", "group.all.sshd", "group.all._index", "group.all._note"} {
				if _, err := kv.PutString(t.Context(), key, "one"); err != nil {
					t.Fatal(err)
				}
			}
			kvtest.Update(t, m, "KV_MUSTER_MANIFESTS", setFormat(format))
			node, err := kvtest.Of(srv.Connect(t), "")
			if err != nil {
				t.Fatal(err)
			}
			w := kvtest.Watch(t, node, watch.Options{Node: "web01", Retry: time.Millisecond, GroupJitter: time.Millisecond})
			kvtest.Eventually(t, "the watch names the remedy", func() (bool, string) {
				_, s := w.Entries()
				return errors.Is(s.Err, kvstore.ErrNotProvisioned) && strings.Contains(s.Err.Error(), "run `muster fleet init` to convert it"), fmt.Sprint(s.Err)
			})
			old, err := kvtest.Of(srv.Connect(t), "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.Put(t.Context(), "node.web01.motd", []byte("two")); !errors.Is(err, kvstore.ErrNotProvisioned) {
				t.Errorf("put = %v", err)
			}
			if err := admin.Check(t.Context()); !errors.Is(err, kvstore.ErrNotProvisioned) || !strings.Contains(err.Error(), "must be 2") {
				t.Errorf("check = %v", err)
			}
			done, err := admin.Apply(t.Context(), provision.Options{})
			if err != nil || len(done) != 1 || !strings.HasPrefix(done[0].String(), "change KV_MUSTER_MANIFESTS: format is ") {
				t.Fatalf("apply = %v, %v", done, err)
			}
			keys, err := kv.Keys(t.Context())
			if slices.Sort(keys); err != nil || fmt.Sprint(keys) != "[group.all._note group.all.sshd node.web01.motd]" {
				t.Errorf("keys = %v, %v", keys, err)
			}
			w.Has(t, "group.all.sshd=one", "node.web01.motd=one")
			if done, err := admin.Apply(t.Context(), provision.Options{}); err != nil || len(done) != 0 {
				t.Errorf("again: %v, %v", done, err)
			}
		})
	}
}

// TestQueuedCommandsAreConverted: older requests of a family share a subject.
func TestQueuedCommandsAreConverted(t *testing.T) {
	t.Parallel()
	srv, admin := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Recreate(t, m, "MUSTER_COMMANDS", func(c *api.StreamConfig) {
		c.Subjects, c.RePublish = []string{"muster.command.*.*"}, nil
		setFormat("1")(c)
	})
	nc := srv.Connect(t)
	for _, id := range []string{"one", "two.x", ""} {
		msg := &nats.Msg{Subject: "muster.command.node.web01", Header: nats.Header{"Nats-TTL": {"1h0m0s"}}, Data: []byte(id)}
		if id != "" {
			msg.Header.Set(nats.MsgIdHdr, id)
		}
		if _, err := nc.RequestMsg(msg, kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := admin.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	if done, err := admin.Apply(t.Context(), provision.Options{}); err != nil || len(done) != 0 {
		t.Errorf("again: %v, %v", done, err)
	}
	if c := kvtest.Config(t, m, "MUSTER_COMMANDS"); !slices.Equal(c.Subjects, []string{"muster.command.*.*.*"}) {
		t.Errorf("subjects are %v", c.Subjects)
	}
	var got kvtest.Inbox
	kvtest.TakeCommands(t, kvtest.Bind(t, srv), requests.CommandOptions{Node: "web01", Audit: kvtest.Never}, func(c requests.Command) {
		if c.ID != string(c.Data) && c.ID != "moved-3" {
			t.Errorf("%s: %s", c.ID, c.Data)
		}
		got.Take(c)
	})
	got.Has(t, "one", "two.x", "moved-3")
	if ok, names := kvtest.NoConsumers(m, "MUSTER_COMMANDS"); !ok {
		t.Error(names)
	}
}
