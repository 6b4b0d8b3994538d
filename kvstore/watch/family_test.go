package watch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// withheld returns an administrator, and a store of web01 with permissions for the group web only.
func withheld(t *testing.T) (srv *natstest.Server, admin, node *kvtest.Store) {
	t.Helper()
	srv = natstest.Start(t, natstest.WithConfig("accounts: {FLEET: {jetstream: enabled, users: [\n{user: admin, password: admin}\n{user: web01, password: web01, "+kvtest.Guarded{API: kvstore.OwnAPI}.Permissions(t, "web01").ServerConfig()+"}\n]}}"))
	admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	node, err = kvtest.Of(srv.Connect(t, nats.UserInfo("web01", "web01"), quiet(), nats.CustomInboxPrefix(kvstore.InboxPrefix("web01"))), "")
	if err != nil {
		t.Fatal(err)
	}

	return srv, admin, node
}

// quiet suppresses the client's output of denials.
func quiet() nats.Option { return nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) }

// TestOneFamilyThatCannotBeRead: the others are known all the same, at start, on
// the audit and when they are announced.
func TestOneFamilyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, admin, node := withheld(t)
	put := func(family, name, value string) {
		t.Helper()
		if _, err := admin.Put(t.Context(), model.Key(family, name), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("node.web01", "own", "one")
	put("group.web", "motd", "one")
	put("group.db", "sql", "one")
	put("group.all", "sshd", "one")
	w := kvtest.Watch(t, node, watch.Options{Node: "web01", Groups: []string{"web", "db"}, Audit: kvtest.Never, GroupJitter: time.Millisecond, Retry: time.Millisecond})
	w.Has(t, "group.all.sshd=one", "group.web.motd=one", "node.web01.own=one")
	kvtest.Eventually(t, "what is known, and what not, is reported", func() (bool, string) {
		_, s := w.Entries()
		ok := s.At.IsZero() && slices.Equal(s.Known, []string{"node.web01", "group.web", "group.all"}) && slices.Equal(s.Failed, []string{"group.db"}) && errors.Is(s.Err, model.ErrNotPermitted)
		return ok, fmt.Sprintf("%+v", s)
	})
	_, s := w.Entries()
	for _, want := range []string{"group.db", "not permitted", "muster fleet permissions web01 --groups web,db"} {
		if !strings.Contains(s.Err.Error(), want) {
			t.Errorf("%q is missing in %v", want, s.Err)
		}
	}
	put("group.all", "sshd", "two")
	put("group.web", "motd", "two")
	w.Has(t, "group.all.sshd=two", "group.web.motd=two", "node.web01.own=one")
	w.WokenBy(t, "group.all.sshd")
}

// TestADeniedSubscriptionHasOneRemedy, also if the denial contains a remedy, as for the inbox.
func TestADeniedSubscriptionHasOneRemedy(t *testing.T) {
	t.Parallel()
	srv, _, node := withheld(t)
	plain, err := kvtest.Of(srv.Connect(t, nats.UserInfo("web01", "web01"), quiet(), nats.CustomInboxPrefix(kvstore.InboxPrefix("web02"))), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*kvtest.Store{"answers": plain, "a group": node} {
		w := kvtest.Watch(t, s, watch.Options{Node: "web01", Groups: []string{"web", "db"}, Audit: kvtest.Never, Retry: time.Millisecond})
		kvtest.Eventually(t, "it is denied", func() (bool, string) {
			_, sync := w.Entries()
			return sync.Denied != nil, fmt.Sprintf("%+v", sync)
		})
		_, sync := w.Entries()
		if n := strings.Count(sync.Denied.Error(), "muster fleet permissions"); n != 1 {
			t.Errorf("%s: %d remedies in %v", name, n, sync.Denied)
		}
	}
}

// TestADenialEndsWithItsGroup: what a node does not subscribe to any more is not denied, also
// where the connection stays the same; what else is denied is.
func TestADenialEndsWithItsGroup(t *testing.T) {
	t.Parallel()
	_, _, node := withheld(t)
	w := kvtest.Watch(t, node, watch.Options{Node: "web01", Groups: []string{"web", "db", "dns"}, Audit: kvtest.Never, Retry: kvtest.Never})
	denied := func(what string) {
		t.Helper()
		kvtest.Eventually(t, "denied is "+what, func() (bool, string) {
			_, sync := w.Entries()
			return len(sync.Known) > 0 && (sync.Denied == nil) == (what == "") && strings.Contains(fmt.Sprint(sync.Denied), what), fmt.Sprintf("%+v", sync)
		})
	}
	denied("changed.group.db.>")
	w.SetGroups([]string{"web", "dns"})
	denied("changed.group.dns.>")
	w.SetGroups([]string{"web"})
	denied("")
	w.SetGroups([]string{"web", "db"})
	denied("changed.group.db.>")
}

// TestWhatIsNotPermittedFailsAtOnce: the answer is the server's refusal, and not
// that none came.
func TestWhatIsNotPermittedFailsAtOnce(t *testing.T) {
	t.Parallel()
	srv, _, node := withheld(t)
	plain, err := kvtest.Of(srv.Connect(t, nats.UserInfo("web01", "web01"), quiet()), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"inbox": func() error { return plain.Check(t.Context()) },
		"again": func() error { return plain.Check(t.Context()) },
		"get":   func() error { _, err := node.Get(t.Context(), "group.db.sql"); return err },
		"list":  func() error { _, err := node.List(t.Context()); return err },
		"nodes": func() error { _, err := node.Nodes(t.Context()); return err },
		"put":   func() error { _, err := node.Put(t.Context(), "group.web.motd", []byte("x")); return err },
		"state": func() error { return node.PutFacts(t.Context(), "web02", nil) },
		"report": func() error {
			_, err := node.PublishReports(t.Context(), []model.Report{kvtest.Outgoing("web02", model.KindRun, "stable", 1)})
			return err
		},
		"reports": func() error {
			for _, err := range node.Reports(t.Context(), model.ReportRange{}) {
				return err
			}
			return nil
		},
		"ask": func() error {
			for _, err := range kvtest.Ask(t.Context(), node, node.Names.Request(kvstore.VerbPing, "group.all"), nil) {
				return err
			}
			return nil
		},
		"plan": func() error { _, err := node.Plan(t.Context(), provision.Options{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			if err := do(); !errors.Is(err, model.ErrNotPermitted) || !strings.Contains(err.Error(), "not permitted to ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
