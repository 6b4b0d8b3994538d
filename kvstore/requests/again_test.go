package requests_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// acknowledging serves a node that acknowledges each ensure request, until the test ends.
func acknowledging(t *testing.T, s *kvtest.Store, node string, groups ...string) {
	t.Helper()
	ready := make(chan struct{})
	kvtest.Serve(t, s, requests.ServeOptions{Node: node, Groups: groups, Ready: func() { close(ready) },
		Ensure: func(_ context.Context, _ *model.Sender, _ []byte, respond func(model.EnsureResponse)) {
			respond(model.EnsureResponse{Phase: model.EnsureAcknowledged})
		},
	})
	kvtest.Receive(t, ready)
}

// ensureOf returns the ensure requests to families.
func ensureOf(s *kvtest.Store, families ...string) []requests.Request {
	var out []requests.Request
	for _, family := range families {
		out = append(out, requests.Request{Subject: s.Names.Request(kvstore.VerbEnsure, family), Data: []byte("{}")})
	}

	return out
}

// asked asks until all nodes have answered, and calls then with each that did.
func asked(t *testing.T, s *kvtest.Store, all []requests.Request, nodes int, then func(node string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
	defer cancel()
	got := map[string]bool{}
	for r, err := range s.Ask(ctx, all) {
		if err != nil {
			continue // that answers may be lost
		}
		got[r.Node] = true
		if then(r.Node); len(got) == nodes {
			return
		}
	}
	t.Errorf("answers of %v, want %d", got, nodes)
}

// TestANodeThatComesLateIsAskedAgain: it connects after the request was sent.
func TestANodeThatComesLateIsAskedAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	acknowledging(t, kvtest.Bind(t, srv), "web01")
	late := kvtest.Bind(t, srv)
	asked(t, store, ensureOf(store, "node.web01", "node.web02"), 2, func(node string) {
		if node == "web01" {
			acknowledging(t, late, "web02")
		}
	})
}

// TestNodesThatConnectLaterThanTheOperatorAreAskedAgain: after an outage of the server, its clients reconnect
// one by one.
func TestNodesThatConnectLaterThanTheOperatorAreAskedAgain(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]struct {
		families []string
		nodes    int
	}{"nodes": {[]string{"node.web01", "node.web02"}, 2}, "one node": {[]string{"node.web02"}, 1}, "a group": {[]string{"group.web"}, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			acknowledging(t, kvtest.Bind(t, srv), "web01", "web")
			late := kvtest.Bind(t, srv)
			seen, nc := make(chan struct{}), srv.Connect(t)
			once := sync.OnceFunc(func() { close(seen) })
			if _, err := nc.Subscribe("muster.ensure.>", func(*nats.Msg) { once() }); err != nil {
				t.Fatal(err)
			}
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			if err := store.Conn.ForceReconnect(); err != nil {
				t.Fatal(err)
			}
			kvtest.Eventually(t, "the connection is back", func() (bool, string) { return !store.Reconnected().IsZero(), "" })
			served := make(chan struct{})
			go func() {
				defer close(served)
				<-seen
				acknowledging(t, late, "web02", "web")
			}()
			asked(t, store, ensureOf(store, to.families...), to.nodes, func(string) {})
			<-served
		})
	}
}

// TestNodesThatAreAwaitedAreAskedAgain: this client begins when the server is back, before the nodes are.
func TestNodesThatAreAwaitedAreAskedAgain(t *testing.T) {
	t.Parallel()
	for name, to := range map[string]struct {
		family  string
		there   bool
		awaited []string
	}{
		"the only node":        {"node.web02", false, []string{"web02"}},
		"all of a group":       {"group.web", false, []string{"web02"}},
		"one node of a group":  {"group.web", true, []string{"web01", "web02"}},
		"one that nobody knew": {"group.web", true, []string{"web01", "web02", "gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			nodes := 1
			if to.there {
				acknowledging(t, kvtest.Bind(t, srv), "web01", "web")
				nodes++
			}
			late, served := kvtest.Bind(t, srv), make(chan struct{})
			// The first request also checks permissions.
			for _, err := range store.Ask(t.Context(), ensureOf(store, "node.nobody")) {
				if !errors.Is(err, requests.ErrNobody) {
					t.Error(err)
				}
			}
			subscribed, sent := store.Conn.NumSubscriptions(), store.Conn.Stats().OutMsgs
			go func() {
				defer close(served)
				kvtest.Eventually(t, "the request is sent", func() (bool, string) {
					return store.Conn.NumSubscriptions() > subscribed && store.Conn.Stats().OutMsgs > sent, ""
				})
				acknowledging(t, late, "web02", "web")
			}()
			all := ensureOf(store, to.family)
			all[0].Awaited = to.awaited
			asked(t, store, all, nodes, func(string) {})
			<-served
		})
	}
}

// TestNothingIsSentWithoutAConnection: requests wait for the connection.
func TestNothingIsSentWithoutAConnection(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	acknowledging(t, kvtest.Bind(t, srv), "web01")
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return store.Away() != nil, "" })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for r, err := range store.Ask(ctx, ensureOf(store, "node.web01")) {
		t.Errorf("while away: %+v, %v", r, err)
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		srv.Start(t)
	}()
	asked(t, store, ensureOf(store, "node.web01"), 1, func(string) {})
	<-back
}
