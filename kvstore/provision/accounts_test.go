package provision_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// A node of each layout works and finds the API; what the fleet sends arrives once.
func TestAccountsAreJoined(t *testing.T) {
	t.Parallel()
	for name, start := range kvtest.Guards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t)
			s, err := kvtest.Of(g.Connect(t, "web01"), "")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.PutState(t.Context(), model.NodeState{Node: "web01"}, time.Hour); err != nil {
				t.Fatal(err)
			}
			if _, err := s.State(t.Context(), "web01"); err != nil {
				t.Error(err)
			}
			if api, found := s.API.InUse(), s.API.IsFound(); api != g.API || !found {
				t.Errorf("API = %s, %v", api, found)
			}
			if err := kvtest.Publish(t.Context(), s, kvtest.Outgoing("web01", model.KindRun, "stable", 1)); err != nil {
				t.Error(err)
			}
			heard := make(chan *nats.Msg, 10)
			if _, err := s.Conn.ChanSubscribe("muster.changed.node.web01.>", heard); err != nil {
				t.Fatal(err)
			}
			if err := s.Conn.Flush(); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Admin.Put(t.Context(), "node.web01.own", []byte("own")); err != nil {
				t.Fatal(err)
			}
			if m := <-heard; m.Subject != "muster.changed.node.web01.own" {
				t.Errorf("heard %s", m.Subject)
			}
			e, err := s.Last(t.Context(), "KV_MUSTER_MANIFESTS", "$KV.MUSTER_MANIFESTS.node.web01.own")
			if err != nil || string(e.Data) != "own" {
				t.Errorf("read %s, %v", e.Data, err)
			}
			kvtest.Serve(t, s, requests.ServeOptions{Node: "web01", Groups: kvtest.GroupsOf["web01"]})
			names := s.Names
			kvtest.Answers(t, g.Admin, names.Request(kvstore.VerbPing, "node.web01"), nil, 1)
			kvtest.Answers(t, g.Admin, "$SRV.PING.muster", nil, 1)
			m, err := g.Admin.Conn.Request(names.Request(kvstore.VerbPing, "node.web01"), nil, kvtest.Deadline)
			if err != nil || string(m.Data) != `"web01"` {
				t.Errorf("plain answer %v, %v", m, err)
			}
		})
	}
}

// A user without permissions, as after a forgotten include, may do nothing.
func TestUserWithoutPermissionsMayDoNothing(t *testing.T) {
	t.Parallel()
	a, err := provision.AccountsOf("")
	if err != nil {
		t.Fatal(err)
	}
	config := a.ServerConfig(provision.Users{
		a.Fleet.Name: {"{user: admin, password: admin}"}, a.Nodes.Name: {"{user: node, password: node}"}, a.Operators.Name: {"{user: operator, password: operator}"},
	})
	byConfig := natstest.Start(t, natstest.WithConfig(config))
	issuer := kvtest.NewIssuer(t)
	byJWT := natstest.Start(t, natstest.WithConfig(issuer.Config))
	for user, account := range map[string]provision.Account{"node": a.Nodes, "operator": a.Operators} {
		creds := issuer.Credentials(t, account.Name, user, kvtest.Limitless())
		for name, connect := range map[string]func() *nats.Conn{
			"configuration": func() *nats.Conn { return byConfig.Connect(t, nats.UserInfo(user, user)) },
			"jwt":           func() *nats.Conn { return byJWT.Connect(t, nats.UserCredentials(creds)) },
		} {
			subscribing, publishing := connect(), connect()
			_, err := subscribing.SubscribeSync("muster.changed.>")
			// A denial arrives before the answer to a flush.
			if err := errors.Join(err, publishing.Publish("fleet.API.STREAM.LIST", nil), subscribing.Flush(), publishing.Flush()); err != nil {
				t.Fatal(err)
			}
			for what, nc := range map[string]*nats.Conn{"subscribe": subscribing, "publish": publishing} {
				if err := nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("%s, %s: may %s: %v", user, name, what, err)
				}
			}
		}
	}
}
