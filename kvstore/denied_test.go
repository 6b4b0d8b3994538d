package kvstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// misplaced returns stores of a fleet with accounts: web01 in its account, a node in OPERATORS, a node in
// FLEET, an operator in NODES, and the operator carol in her account.
func misplaced(t *testing.T) map[string]*kvtest.Store {
	t.Helper()
	a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
	user := func(name string, p provision.Permissions) string {
		return fmt.Sprintf("{user: %s, password: %s, %s}", name, name, p.ServerConfig())
	}
	operator := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.OperatorPermissions("", "bob", []string{"web"}, nil)
	})
	carol := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.OperatorPermissions("", "carol", []string{"web"}, nil)
	})
	srv := natstest.Start(t, natstest.WithConfig(a.ServerConfig(provision.Users{
		a.Fleet.Name:     {"{user: admin, password: admin}", user("db01", kvtest.PermissionsOf(t, "db01"))},
		a.Nodes.Name:     {user("web01", kvtest.PermissionsOf(t, "web01")), user("bob", operator)},
		a.Operators.Name: {user("web02", kvtest.PermissionsOf(t, "web02")), user("carol", carol)},
	})))
	admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	if err == nil {
		_, err = admin.Apply(t.Context(), provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	stores := map[string]*kvtest.Store{}
	for _, name := range []string{"web01", "web02", "bob", "db01", "carol"} {
		quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
		stores[name], err = kvtest.Of(srv.Connect(t, nats.UserInfo(name, name), quiet, nats.CustomInboxPrefix(kvstore.InboxPrefix(name))), "")
		if err != nil {
			t.Fatal(err)
		}
	}

	return stores
}

// TestANodeThatReadsAllIsDeniedAtOnce: what only operators read is named as that.
func TestANodeThatReadsAllIsDeniedAtOnce(t *testing.T) {
	t.Parallel()
	node := misplaced(t)["web01"]
	for name, do := range map[string]func() error{
		"list":  func() error { _, err := node.List(t.Context()); return err },
		"nodes": func() error { _, err := node.Nodes(t.Context()); return err },
		"reports": func() error {
			for _, err := range node.Reports(t.Context(), model.ReportRange{}) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := do(); !errors.Is(err, model.ErrNotPermitted) || !strings.Contains(err.Error(), "not permitted to publish to fleet.API.DIRECT.GET.") || !strings.Contains(err.Error(), "a node may read only its own keys") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestAUserOfAnotherAccount: the error explains why no stream stores the message.
func TestAUserOfAnotherAccount(t *testing.T) {
	t.Parallel()
	stores := misplaced(t)
	for name, do := range map[string]func() error{
		"push":   func() error { _, err := stores["bob"].Put(t.Context(), "group.web.motd", []byte("x")); return err },
		"remove": func() error { _, err := stores["bob"].Delete(t.Context(), "group.web.motd", nil); return err },
		"report": func() error {
			_, err := stores["web02"].PublishReports(t.Context(), []model.Report{kvtest.Outgoing("web02", model.KindRun, "stable", 1)})
			return err
		},
		"facts": func() error { return stores["web02"].PutFacts(t.Context(), "web02", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := do()
			if !errors.As(err, &kvstore.Unrouted{}) || !strings.Contains(err.Error(), "from this account: is the user in the right account") || strings.Contains(err.Error(), "nats:") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestAnAgentOfAUserThatIsNoNode: with permissions of other accounts or of an operator, the error names cause
// and remedy.
func TestAnAgentOfAUserThatIsNoNode(t *testing.T) {
	t.Parallel()
	stores := misplaced(t)
	for node, want := range map[string]string{
		"db01":  "or, in the fleet's own account, what `muster fleet permissions NODE --one-account` prints",
		"carol": "this user has the permissions of an operator, or too few: an agent needs a user of NODES with the permissions that `muster fleet permissions carol --groups web` prints",
	} {
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			stores[node].Denials.OfNode(kvstore.PermissionsCommand(node, []string{"web"}))
			err := stores[node].PutState(t.Context(), model.NodeState{Node: node}, time.Minute)
			if err == nil || !kvstore.IsExplained(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "nats:") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestAChosenPlaceIsFoundOnceItAnswers: a prefix of the configuration is no proof.
func TestAChosenPlaceIsFoundOnceItAnswers(t *testing.T) {
	t.Parallel()
	nc := misplaced(t)["web01"].Conn
	for api, answers := range map[kvstore.APIPrefix]bool{kvstore.OwnAPI: false, kvstore.JoinedAPI: true} {
		s, err := kvstore.New(nc, "", api)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Infos(t.Context(), ""); (err == nil) != answers {
			t.Fatalf("%s: %v", api, err)
		}
		located := false
		select {
		case <-s.API.Located():
			located = true
		default:
		}
		if located != answers {
			t.Errorf("%s counts as found: %v", api, located)
		}
	}
}

// TestTheFirstDeniedSubscriptionIsNamed: by order, so that it is the same each time.
func TestTheFirstDeniedSubscriptionIsNamed(t *testing.T) {
	t.Parallel()
	node := misplaced(t)["web01"]
	for _, subject := range []string{"other.b", "other.a", "other.c"} {
		if _, err := node.Conn.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
	}
	// The server denies them in their order, and then this.
	if _, err := node.List(t.Context()); !errors.Is(err, model.ErrNotPermitted) {
		t.Fatal(err)
	}
	all := func(string) bool { return true }
	if err := node.Denials.Subscription(all); err == nil || !strings.Contains(err.Error(), "other.a") {
		t.Errorf("it is %v", err)
	}
	but := func(subject string) bool { return subject != "other.a" }
	if err := node.Denials.Subscription(but); err == nil || !strings.Contains(err.Error(), "other.b") {
		t.Errorf("without other.a it is %v", err)
	}
	node.Denials.Forget(but)
	if err := node.Denials.Subscription(all); err == nil || !strings.Contains(err.Error(), "other.b") {
		t.Errorf("once other.a is forgotten it is %v", err)
	}
}
