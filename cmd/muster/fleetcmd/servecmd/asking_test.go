package servecmd

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/permissions"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestAskingFollowsPermissions: what is not permitted is known by verb, and asked for again, since the server
// may permit it while serve runs; what is permitted is not asked for again on the same connection.
func TestAskingFollowsPermissions(t *testing.T) {
	t.Parallel()
	config := func(verbs ...string) string {
		a := kvtest.Must(t, func() (permissions.Accounts, error) { return permissions.AccountsOf("") })
		p := kvtest.Must(t, func() (permissions.Permissions, error) {
			return permissions.Dashboard("", "board", permissions.Serving{Requests: verbs})
		})

		return a.ServerConfig(permissions.Users{
			a.Fleet.Name:      {"{user: admin, password: admin}"},
			a.Requesters.Name: {fmt.Sprintf("{user: board, password: board, %s}", p.ServerConfig())},
		})
	}
	srv := natstest.Start(t, natstest.WithConfig(config(kvstore.VerbRun)))
	admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	if err == nil {
		_, err = admin.Apply(t.Context(), provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := kvtest.BindTo(t, srv.Connect(t, nats.UserInfo("board", "board"), nats.CustomInboxPrefix("_INBOX_board")))
	a := newAsking(s.Store)
	if err := a.can(kvstore.VerbRun); err != nil {
		t.Error(err)
	}
	if err := a.can(kvstore.VerbPreview); !errors.Is(err, requests.ErrNotAsked) {
		t.Error(err)
	}
	sent := func() uint64 { return s.Conn().Stats().OutMsgs }
	before := sent()
	for _, verb := range kvstore.RequesterVerbs() {
		_ = a.can(verb)
	}
	if sent() != before {
		t.Error("it asked again")
	}
	srv.Reload(t, config(kvstore.RequesterVerbs()...))
	if err := a.can(kvstore.VerbPreview); !errors.Is(err, requests.ErrNotAsked) {
		t.Error(err)
	}
	a = newAsking(s.Store)
	a.recheck = time.Nanosecond
	kvtest.Eventually(t, "the new permission", func() (bool, string) {
		err := a.can(kvstore.VerbPreview)
		return err == nil, fmt.Sprint(err)
	})
	// Without a connection nobody says anything else, or waits for it.
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return s.Away() != nil, "" })
	if slices.ContainsFunc(kvstore.RequesterVerbs(), func(verb string) bool { return a.can(verb) != nil }) {
		t.Error("without a connection it says that nothing is permitted")
	}
	own := newAsking(admin.Store)
	if err := own.can(kvstore.VerbPreview); err != nil {
		t.Error(err)
	}
}
