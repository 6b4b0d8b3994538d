package requests_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestCommandsWaitForANode(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put := func(family, id string) {
		t.Helper()
		kvtest.Eventually(t, "put command", func() (bool, string) {
			err := store.PutCommand(t.Context(), family, id, []byte(id), time.Hour)
			return err == nil, fmt.Sprint(err)
		})
	}
	put("node.web01", "early1")
	put("node.web01", "early2")
	put("node.web02", "other")
	put("group.web", "early3")
	put("group.all", "early4")
	var got kvtest.Inbox
	o := requests.CommandOptions{Node: "web01", Groups: []string{"web"}, Retry: time.Millisecond}
	stop := kvtest.TakeCommands(t, kvtest.Bind(t, srv), o, got.Take)
	got.Has(t, "early1", "early2", "early3", "early4")
	put("node.web01", "live1")
	got.Has(t, "early1", "early2", "early3", "early4", "live1")
	put("group.all", "live2")
	put("node.web02", "other2")
	got.Has(t, "early1", "early2", "early3", "early4", "live1", "live2")
	srv.Restart(t)
	put("group.web", "after")
	got.Has(t, "early1", "early2", "early3", "early4", "live1", "live2", "after")
	stop()
	m := kvtest.Manager(t, srv)
	kvtest.Eventually(t, "no consumer is left", func() (bool, string) { return kvtest.NoConsumers(m, "MUSTER_COMMANDS") })
}

// TestCommandsWithUnreadableHeaders: one is refused alone and once, when it arrives
// and after an absence; those behind it are taken.
func TestCommandsWithUnreadableHeaders(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put := func(id string) {
		t.Helper()
		if err := store.PutCommand(t.Context(), "node.web01", id, []byte(id), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	bad := func(id string) {
		srv.Raw(t, "muster.command.node.web01."+kvstore.Token(id), "NATS/1.0\r\nfoo\r\n\r\n", id)
	}
	var got kvtest.Inbox
	take := func(c requests.Command) {
		if errors.Is(c.Refused, kvstore.ErrUnreadable) && c.Data == nil {
			c.ID = "refused " + c.ID
		}
		got.Take(c)
	}
	put("early")
	bad("bad")
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	kvtest.TakeCommands(t, kvtest.Bind(t, srv, quiet), requests.CommandOptions{Node: "web01", Retry: time.Millisecond, Audit: 10 * time.Millisecond}, take)
	got.Has(t, "refused bad", "early")
	put("live")
	got.Has(t, "refused bad", "early", "live")
	bad("worse")
	got.Has(t, "refused bad", "early", "live", "refused worse")
	put("last")
	got.Has(t, "refused bad", "early", "live", "refused worse", "last")
}

// TestCommandsWithTooManyHeadersHoldUpNothing: the announcement of each has a sequence,
// and waiting for it to be readable held up all other commands.
func TestCommandsWithTooManyHeadersHoldUpNothing(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	var got kvtest.Inbox
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	kvtest.TakeCommands(t, kvtest.Bind(t, srv, quiet), requests.CommandOptions{Node: "web01", Audit: kvtest.Never}, got.Take)
	put := func(id string) {
		t.Helper()
		if err := store.PutCommand(t.Context(), "node.web01", id, []byte(id), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put("first")
	got.Has(t, "first")
	// Waiting for each would take longer than the test waits.
	want := []string{"first"}
	for i := range 400 {
		want = append(want, fmt.Sprintf("bad%03d", i))
		srv.Raw(t, "muster.command.node.web01."+kvstore.Token(want[i+1]), "NATS/1.0\r\n"+strings.Repeat("A: b\r\n", 30)+"\r\n", "x")
	}
	put("last")
	got.Has(t, append(want, "last")...)
}

// TestHandledCommandsAreNotReadAgain: while the newest command of a family cannot be read,
// each audit looks for others; it read all that wait there, each time.
func TestHandledCommandsAreNotReadAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	const waiting = 20
	var want []string
	for i := range waiting {
		want = append(want, fmt.Sprintf("c%02d", i))
		if err := store.PutCommand(t.Context(), "node.web01", want[i], []byte("x"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	srv.Raw(t, "muster.command.node.web01.bad", "NATS/1.0\r\nfoo\r\n\r\n", "x")
	var audits, reads atomic.Int64
	of := kvstore.OwnAPI.DirectGet("MUSTER_COMMANDS", "muster.command.node.web01.")
	sub, err := store.Conn.Subscribe(kvstore.OwnAPI.DirectGet("MUSTER_COMMANDS", ">"), func(m *nats.Msg) {
		switch {
		case m.Subject == of+">":
			audits.Add(1)
		case strings.HasPrefix(m.Subject, of):
			reads.Add(1)
		}
	})
	if err == nil {
		err = store.Conn.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	var got kvtest.Inbox
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	kvtest.TakeCommands(t, kvtest.Bind(t, srv, quiet), requests.CommandOptions{Node: "web01", Audit: 5 * time.Millisecond}, got.Take)
	got.Has(t, append([]string{"bad"}, want...)...)
	kvtest.Eventually(t, "the audit comes again", func() (bool, string) { return audits.Load() > 20, fmt.Sprint(audits.Load()) })
	if n := reads.Load(); n > 2*(waiting+1) {
		t.Errorf("%d reads of %d commands in %d audits", n, waiting+1, audits.Load())
	}
}

// An unaccepted request is delivered again, also one that arrived live. Others do not wait for it.
func TestCommandsThatAreNotTakenComeAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put := func(id string) {
		t.Helper()
		if err := store.PutCommand(t.Context(), "node.web01", id, []byte(id), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	put("early")
	put("other")
	var got kvtest.Inbox
	refused := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- kvtest.Bind(t, srv).Commands(ctx, requests.CommandOptions{Node: "web01", Retry: time.Millisecond, Log: slog.New(slog.DiscardHandler)}, func(_ context.Context, c requests.Command) error {
			if refused[c.ID]++; c.ID != "other" && refused[c.ID] < 3 {
				return errors.New("the disk is full")
			}
			got.Take(c)
			return nil
		})
	}()
	got.Has(t, "other", "early")
	put("live")
	got.Has(t, "other", "early", "live")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestReplacedCommandsThatAreNotTakenComeAgain: a request that was stored again under its id, and was not
// accepted, is read again although its subject was handled.
func TestReplacedCommandsThatAreNotTakenComeAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	calls := make(chan int, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	bound, count := kvtest.Bind(t, srv), 0
	go func() {
		ended <- bound.Commands(ctx, requests.CommandOptions{Node: "web01", Retry: time.Millisecond, Audit: kvtest.Never, Log: slog.New(slog.DiscardHandler)}, func(context.Context, requests.Command) error {
			count++
			calls <- count
			// Both may be announced; the announcement of the first may find the second.
			if count == 2 || count == 3 {
				return errors.New("the disk is full")
			}
			return nil
		})
	}()
	for i, data := range []string{"first", "second"} {
		if err := store.PutCommand(t.Context(), "node.web01", "a", []byte(data), time.Hour); err != nil {
			t.Fatal(err)
		}
		awaitCall(t, calls, i+1)
	}
	awaitCall(t, calls, 3)
	awaitCall(t, calls, 4)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// awaitCall waits until a command was handled for the n-th time.
func awaitCall(t *testing.T, calls <-chan int, n int) {
	t.Helper()
	select {
	case got := <-calls:
		if got != n {
			t.Fatalf("call %d, not %d", got, n)
		}
	case <-time.After(kvtest.Deadline):
		t.Fatalf("no call %d", n)
	}
}

// TestReplacedCommandsWhoseAnnouncementIsLostComeAgain: the announcements during a slow request exceed the
// buffer. One of the lost ones belongs to a request that was stored again.
func TestReplacedCommandsWhoseAnnouncementIsLostComeAgain(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	lost := make(chan struct{}, 1)
	nc := srv.Connect(t, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrSlowConsumer) {
			select {
			case lost <- struct{}{}:
			default:
			}
		}
	}))
	put := func(id, data string) {
		t.Helper()
		if err := store.PutCommand(t.Context(), "node.web01", id, []byte(data), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	got, resume := make(chan string, 10), make(chan struct{})
	kvtest.TakeCommands(t, kvtest.BindTo(t, nc), requests.CommandOptions{Node: "web01", Audit: 5 * time.Millisecond}, func(c requests.Command) {
		got <- string(c.Data)
		if c.ID == "slow" {
			<-resume
		}
	})
	await := func(want string) {
		t.Helper()
		select {
		case data := <-got:
			if data != want {
				t.Errorf("%s, not %s", data, want)
			}
		case <-time.After(kvtest.Deadline):
			t.Errorf("%s did not come", want)
		}
	}
	put("a", "first")
	await("first")
	put("slow", "slow")
	await("slow")
	for lostOne := false; !lostOne; {
		if err := store.Conn.Publish(store.Names.CommandQueued("node.web01", "slow"), nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-lost:
			lostOne = true
		default:
		}
	}
	before := nc.Stats().InMsgs
	put("a", "second")
	kvtest.Eventually(t, "it was announced", func() (bool, string) { return nc.Stats().InMsgs > before, "" })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	close(resume)
	await("second")
}

// TestACommandIsReplacedAtOnce, also within the duplicate window of the server.
func TestACommandIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for _, data := range []string{"first", "second"} {
		if err := store.PutCommand(t.Context(), "node.web01", "a", []byte(data), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	m, err := store.Last(t.Context(), "MUSTER_COMMANDS", "muster.command.node.web01.>")
	if err != nil || string(m.Data) != "second" {
		t.Errorf("%q, %v", m.Data, err)
	}
}

// A command that was lost on its way is found on the audit.
func TestLostCommandsAreFound(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	var got kvtest.Inbox
	kvtest.TakeCommands(t, kvtest.Bind(t, srv), requests.CommandOptions{Node: "web01", Audit: 5 * time.Millisecond}, got.Take)
	// Stored, and not announced.
	kvtest.Update(t, kvtest.Manager(t, srv), "MUSTER_COMMANDS", func(c *api.StreamConfig) { c.RePublish = nil })
	for i, want := range []string{"a", "b"} {
		if _, err := srv.Connect(t).Request("muster.command.node.web01."+want, nil, kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
		got.Has(t, []string{"a", "b"}[:i+1]...)
	}
}

func TestExpiredCommandsAreGone(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if err := store.PutCommand(t.Context(), "node.web01", "short", nil, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := store.PutCommand(t.Context(), "node.web01", "long", nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	stream, err := kvtest.Manager(t, srv).LoadStream("MUSTER_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "the short one expires", func() (bool, string) {
		state, err := stream.State()
		return err == nil && state.Msgs == 1, fmt.Sprintf("%+v, %v", state, err)
	})
	var got kvtest.Inbox
	kvtest.TakeCommands(t, kvtest.Bind(t, srv), requests.CommandOptions{Node: "web01"}, got.Take)
	got.Has(t, "long")
}

func TestCommandsAreRefused(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for name, tt := range map[string]struct {
		family, id string
		data       []byte
		ttl        time.Duration
		want       error
	}{
		"family": {family: "web01", id: "a", ttl: time.Second, want: model.ErrInvalidName},
		"id":     {family: "node.web01", ttl: time.Second, want: model.ErrInvalidName},
		"size":   {family: "node.web01", id: "a", data: make([]byte, 2<<20), ttl: time.Second, want: model.ErrTooLarge},
		"ttl":    {family: "node.web01", id: "a", ttl: 25 * time.Hour, want: model.ErrTooLarge},
	} {
		if err := store.PutCommand(t.Context(), tt.family, tt.id, tt.data, tt.ttl); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := store.Commands(t.Context(), requests.CommandOptions{Node: "a.b"}, nil); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("commands = %v", err)
	}
}

// Each request is handled once, in the order of storing, whatever its id and headers. Invalid ones are
// reported.
func TestCommandsOfAnyKind(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"queued": true, "live": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			got := make(chan string, 100)
			begin := func() {
				kvtest.TakeCommands(t, kvtest.Bind(t, srv), requests.CommandOptions{Node: "web01", Audit: 5 * time.Millisecond}, func(c requests.Command) {
					refused := ""
					if c.Refused != nil {
						refused = " refused"
					}
					got <- fmt.Sprintf("%s %q%s", c.ID, c.Data, refused)
				})
			}
			if !early {
				begin()
			}
			for _, id := range []string{"plain", "a.b.c", "*", "with blank", "=odd"} {
				if err := store.PutCommand(t.Context(), "node.web01", id, []byte("of "+id), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			nc := srv.Connect(t)
			for _, m := range []*nats.Msg{
				{Subject: "muster.command.node.web01.status", Header: nats.Header{"Status": {"404"}}},
				{Subject: "muster.command.node.web01.nobody", Header: nats.Header{"Status": {"503"}}},
				{Subject: "muster.command.node.web01.origin", Header: nats.Header{"Nats-Subject": {"muster.command.node.web02.x"}, "Nats-Sequence": {"1"}}, Data: []byte("evil")},
				{Subject: "muster.command.node.web01.=!", Data: []byte("no id")},
				{Subject: "muster.command.node.web01.raw", Data: []byte("by a tool")},
			} {
				if _, err := nc.RequestMsg(m, kvtest.Deadline); err != nil {
					t.Fatal(err)
				}
			}
			if early {
				begin()
			}
			for _, want := range []string{
				`plain "of plain"`, `a.b.c "of a.b.c"`, `* "of *"`, `with blank "of with blank"`, `=odd "of =odd"`,
				`status "" refused`, `nobody "" refused`, `origin "" refused`, ` "" refused`, `raw "by a tool"`,
			} {
				if one := <-got; one != want {
					t.Errorf("got %s, want %s", one, want)
				}
			}
			if err := store.PutCommand(t.Context(), "node.web01", "end", nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			if one := <-got; one != `end ""` {
				t.Errorf("got %s again", one)
			}
		})
	}
}
