package kvstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// swallow subscribes to all subjects, as `nats sub '>'` does. Then the server never reports "no responders".
func swallow(t *testing.T, nc *nats.Conn) {
	t.Helper()
	_, err := nc.Subscribe(">", func(*nats.Msg) {})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestASubscriberToEverythingHidesNoJetStream: a node first asks at the prefix of joined accounts. In a fleet with one account
// nothing answers there.
func TestASubscriberToEverythingHidesNoJetStream(t *testing.T) {
	t.Parallel()
	srv, admin := kvtest.New(t)
	swallow(t, admin.Conn)
	node := kvtest.Bind(t, srv, nats.CustomInboxPrefix(kvstore.InboxPrefix("web01")))
	if _, err := node.Infos(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if at := node.API.InUse(); at != kvstore.OwnAPI {
		t.Errorf("JetStream is asked at %s", at)
	}
	// A responder that is not JetStream does not count.
	_, err := admin.Conn.Subscribe("fleet.API.>", func(m *nats.Msg) { _ = m.Respond([]byte("hello")) })
	if err == nil {
		err = admin.Conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	node = kvtest.Bind(t, srv, nats.CustomInboxPrefix(kvstore.InboxPrefix("web02")))
	if _, err := node.Infos(t.Context(), ""); err != nil || node.API.InUse() != kvstore.OwnAPI {
		t.Errorf("JetStream is asked at %s: %v", node.API.InUse(), err)
	}
}

// TestASubscriberToEverythingHidesNoMissingBucket: the error names the missing bucket, although the request has no answer.
func TestASubscriberToEverythingHidesNoMissingBucket(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	swallow(t, store.Conn)
	_, byKey := store.KVGet(t.Context(), "nosuch", "key")
	_, byObject := store.Object(t.Context(), "nosuch", "name")
	for what, err := range map[string]error{"key": byKey, "object": byObject} {
		if err == nil || !strings.Contains(err.Error(), "or one without direct get") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestASubscriberToEverythingDeniesNoRequests: the check of permissions needs no answer.
func TestASubscriberToEverythingDeniesNoRequests(t *testing.T) {
	t.Parallel()
	a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
	srv := natstest.Start(t, natstest.WithConfig(a.ServerConfig(provision.Users{
		a.Fleet.Name: {"{user: admin, password: admin}"},
		a.Requesters.Name: {
			fmt.Sprintf("{user: %s, password: %s, %s}", kvtest.Requester, kvtest.Requester, kvtest.RequesterPermissions(t).ServerConfig()),
			"{user: all, password: all, permissions: {subscribe: \">\"}}",
		},
	})))
	admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	if err == nil {
		_, err = admin.Apply(t.Context(), provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	swallow(t, srv.Connect(t, nats.UserInfo("all", "all")))
	store, err := kvtest.Of(srv.Connect(t, nats.UserInfo(kvtest.Requester, kvtest.Requester), nats.CustomInboxPrefix(kvstore.InboxPrefix(kvtest.Requester))), "")
	if err == nil {
		_, err = store.Infos(t.Context(), "")
	}
	if err == nil {
		err = store.CheckRequests(t.Context(), "run")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CheckRequests(t.Context(), "ensure"); !errors.Is(err, requests.ErrRequestsNotPermitted) {
		t.Errorf("ensure: %v", err)
	}
}
