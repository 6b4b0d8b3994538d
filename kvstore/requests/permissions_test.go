package requests_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// requesterConfig configures a server with a fleet, and in the account of requesters a dashboard that may
// send requests of some verbs.
func requesterConfig(t *testing.T, verbs ...string) string {
	t.Helper()
	a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
	p := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.DashboardPermissions("", "board", provision.Serving{Requests: verbs})
	})

	return a.ServerConfig(provision.Users{
		a.Fleet.Name:      {"{user: admin, password: admin}"},
		a.Requesters.Name: {fmt.Sprintf("{user: board, password: board, %s}", p.ServerConfig())},
	})
}

// newRequester starts such a server, and returns it with the stores of an administrator and the dashboard.
func newRequester(t *testing.T, verbs ...string) (srv *natstest.Server, admin, board *kvtest.Store) {
	t.Helper()
	srv = natstest.Start(t, natstest.WithConfig(requesterConfig(t, verbs...)))
	admin, err := kvtest.Of(srv.Connect(t, nats.UserInfo("admin", "admin")), "")
	if err == nil {
		_, err = admin.Apply(t.Context(), provision.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}

	return srv, admin, kvtest.BindTo(t, srv.Connect(t, nats.UserInfo("board", "board"), nats.CustomInboxPrefix("_INBOX_board")))
}

// TestPermittedFollowsPermissions: denials are known by verb and checked again, since the server may permit
// the verb later. A permitted verb is not checked again on the same connection.
func TestPermittedFollowsPermissions(t *testing.T) {
	t.Parallel()
	srv, admin, s := newRequester(t, kvstore.VerbRun)
	p := requests.NewPermissions(s.Store)
	if err := p.Check(kvstore.VerbRun); err != nil {
		t.Error(err)
	}
	if err := p.Check(kvstore.VerbPreview); !errors.Is(err, requests.ErrRequestsNotPermitted) {
		t.Error(err)
	}
	sent := func() uint64 { return s.Conn.Stats().OutMsgs }
	before := sent()
	for _, verb := range kvstore.RequesterVerbs() {
		_ = p.Check(verb)
	}
	if sent() != before {
		t.Error("it asked again")
	}
	srv.Reload(t, requesterConfig(t, kvstore.RequesterVerbs()...))
	if err := p.Check(kvstore.VerbPreview); !errors.Is(err, requests.ErrRequestsNotPermitted) {
		t.Error(err)
	}
	p = requests.NewPermissions(s.Store)
	p.Recheck = time.Nanosecond
	kvtest.Eventually(t, "the new permission", func() (bool, string) {
		err := p.Check(kvstore.VerbPreview)
		return err == nil, fmt.Sprint(err)
	})
	// Without a connection the result stays, without a wait.
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return s.Away() != nil, "" })
	if slices.ContainsFunc(kvstore.RequesterVerbs(), func(verb string) bool { return p.Check(verb) != nil }) {
		t.Error("without a connection it says that nothing is permitted")
	}
	own := requests.NewPermissions(admin.Store)
	if err := own.Check(kvstore.VerbPreview); err != nil {
		t.Error(err)
	}
}

// TestASlowCheckHoldsUpNoOther: while one check has no answer, other verbs are known. All callers of the slow
// check share its answer.
func TestASlowCheckHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	_, _, s := newRequester(t, kvstore.RequesterVerbs()...)
	p := requests.NewPermissions(s.Store)
	if err := p.Check(kvstore.VerbRun); err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan string, 9), make(chan struct{})
	ask := p.Ask
	p.Ask = func(_ context.Context, verb string) error {
		asked <- verb
		<-answer
		return ask(t.Context(), verb)
	}
	answers := make(chan error, 2)
	for range cap(answers) {
		go func() { answers <- p.Check(kvstore.VerbPreview) }()
	}
	<-asked
	if err := p.Check(kvstore.VerbRun); err != nil {
		t.Error(err)
	}
	select {
	case err := <-answers:
		t.Errorf("the slow one ended before: %v", err)
	default:
	}
	close(answer)
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if len(asked) > 0 {
		t.Error("it asked twice")
	}
}
