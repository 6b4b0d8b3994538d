package fleetcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
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

// swallowing dials connections that lose all data from the first write with a given text.
type swallowing struct {
	text atomic.Pointer[string]
}

// Dial connects.
func (s *swallowing) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)

	return &lossy{Conn: c, by: s}, err
}

type lossy struct {
	net.Conn
	by   *swallowing
	lost bool
}

// Write writes, or loses it.
func (l *lossy) Write(b []byte) (int, error) {
	if text := l.by.text.Load(); text != nil && bytes.Contains(b, []byte(*text)) {
		l.lost = true
	}
	if l.lost {
		return len(b), nil
	}

	return l.Conn.Write(b)
}

// TestWhetherAPauseWasWritten: without an answer of NATS, the error says "not written" only if that is
// certain.
func TestWhetherAPauseWasWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lost, want string }{
		"what is read":    {"DIRECT.GET.KV_MUSTER_CONTROL", "NATS does not answer: not written ("},
		"what is written": {"PUB $KV.MUSTER_CONTROL.", "NATS does not answer: it may have been written, see the audit ("},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _ := kvtest.New(t)
			for _, resume := range []bool{false, true} {
				t.Run(map[bool]string{false: "pause", true: "resume"}[resume], func(t *testing.T) {
					t.Parallel()
					conn := &swallowing{}
					b := backend{store: kvtest.Bind(t, srv, nats.SetCustomDialer(conn)).Store, log: slog.New(slog.DiscardHandler), paused: func(string) string { return "" }}
					if _, err := b.Pause(t.Context(), "node.web01", model.Pause{By: "anna"}); err != nil {
						t.Fatal(err)
					}
					conn.text.Store(&c.lost)
					write := func() (string, error) { return b.Pause(t.Context(), "node.web01", model.Pause{By: "anna"}) }
					if resume {
						write = func() (string, error) { return b.Resume(t.Context(), "node.web01", "anna") }
					}
					if _, err := write(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
						t.Errorf("%v, want %s", err, c.want)
					}
				})
			}
		})
	}
}

// TestNothingIsWrittenWhileNATSIsAway: the error comes at once.
func TestNothingIsWrittenWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	b := backend{store: store.Store, log: slog.New(slog.DiscardHandler), paused: func(string) string { return "" }}
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return store.Away() != nil, "" })
	const want = "NATS cannot be reached (nats: server is disconnected): not written"
	for name, write := range map[string]func(context.Context) (string, error){
		"pause":  func(ctx context.Context) (string, error) { return b.Pause(ctx, "node.web01", model.Pause{By: "anna"}) },
		"resume": func(ctx context.Context) (string, error) { return b.Resume(ctx, "node.web01", "anna") },
	} {
		if _, err := write(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

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
	p := newPermitted(s.Store)
	if err := p.check(kvstore.VerbRun); err != nil {
		t.Error(err)
	}
	if err := p.check(kvstore.VerbPreview); !errors.Is(err, requests.ErrRequestsNotPermitted) {
		t.Error(err)
	}
	sent := func() uint64 { return s.Conn.Stats().OutMsgs }
	before := sent()
	for _, verb := range kvstore.RequesterVerbs() {
		_ = p.check(verb)
	}
	if sent() != before {
		t.Error("it asked again")
	}
	srv.Reload(t, requesterConfig(t, kvstore.RequesterVerbs()...))
	if err := p.check(kvstore.VerbPreview); !errors.Is(err, requests.ErrRequestsNotPermitted) {
		t.Error(err)
	}
	p = newPermitted(s.Store)
	p.recheck = time.Nanosecond
	kvtest.Eventually(t, "the new permission", func() (bool, string) {
		err := p.check(kvstore.VerbPreview)
		return err == nil, fmt.Sprint(err)
	})
	// Without a connection the result stays, without a wait.
	srv.Stop()
	kvtest.Eventually(t, "the connection is lost", func() (bool, string) { return s.Away() != nil, "" })
	if slices.ContainsFunc(kvstore.RequesterVerbs(), func(verb string) bool { return p.check(verb) != nil }) {
		t.Error("without a connection it says that nothing is permitted")
	}
	own := newPermitted(admin.Store)
	if err := own.check(kvstore.VerbPreview); err != nil {
		t.Error(err)
	}
}

// TestASlowCheckHoldsUpNoOther: while one check has no answer, other verbs are known. All callers of the slow
// check share its answer.
func TestASlowCheckHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	_, _, s := newRequester(t, kvstore.RequesterVerbs()...)
	p := newPermitted(s.Store)
	if err := p.check(kvstore.VerbRun); err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan string, 9), make(chan struct{})
	ask := p.ask
	p.ask = func(_ context.Context, verb string) error {
		asked <- verb
		<-answer
		return ask(t.Context(), verb)
	}
	answers := make(chan error, 2)
	for range cap(answers) {
		go func() { answers <- p.check(kvstore.VerbPreview) }()
	}
	<-asked
	if err := p.check(kvstore.VerbRun); err != nil {
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
