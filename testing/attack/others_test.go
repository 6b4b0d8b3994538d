package attack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// beside are attacks on actions in progress of other users.
func beside() []attack {
	return []attack{
		{
			name: "inboxes", control: base, sign: "answer reached",
			does: "directs answers of the server to the inboxes of another node, by guesses and wildcards", never: "that node gets an unrequested answer", do: guessInbox,
		}, {
			name: "queue-groups", control: limitless, sign: "was not heard",
			does: "joins queue groups on all permitted subjects", never: "a request does not reach another node", do: joinQueues,
		}, {
			name: "answers", control: limitless, sign: "answered for the server",
			does: "answers every message that it hears, in place of the server or of others", never: "an operator accepts the answer as the server's acknowledgement", do: answerAll,
		}, {
			name: "duplicates", control: base, sign: "taken for a duplicate",
			does: "publishes with all message ids that it sees or guesses", never: "a report of another node is dropped as a duplicate", do: duplicate,
		}, {
			name: "floods", control: limitless, sign: "no answer",
			does: "subscribes, requests and publishes without limit, with the largest messages, and reads no answers", never: "another node gets no answer, or loses its connection", do: flood,
		},
	}
}

// notice is a breach that the attack itself has found out.
func (a *attacker) notice(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noticed = append(a.noticed, fmt.Sprintf(format, args...))
}

func guessInbox(a *attacker) {
	nc := a.fleet.connect(a.t, victim, len(a.fleet.servers)/2)
	defer nc.Close()
	inbox := nc.NewInbox()
	var reached atomic.Int32
	for _, s := range []string{inbox, inbox + ".*"} {
		if _, err := nc.Subscribe(s, func(*nats.Msg) { reached.Add(1) }); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		a.t.Fatal(err)
	}
	guesses := []string{"_INBOX_web02.>", "_INBOX_web02.*", "_INBOX_web02.*.*", "_INBOX_web02.guess", "_INBOX_*.>", "_INBOX_web02"}
	if a.fleet.control {
		guesses = append(guesses, inbox)
	}
	a.courier(target{subjects: guesses, payload: "{}"}, nil)
	a.last()
	if err := nc.FlushTimeout(kvtest.Deadline); err != nil {
		a.t.Fatal(err)
	}
	if n := reached.Load(); n > 0 {
		a.notice("an answer reached an inbox of %s, %d times", victim, n)
	}
}

func joinQueues(a *attacker) {
	const requests, queue = 20, "q"
	nc := a.fleet.connect(a.t, victim, len(a.fleet.servers)/2)
	defer nc.Close()
	for _, s := range a.fleet.may[a.limits].Subscribe {
		a.subscribe(s, queue)
		a.subscribe(s, "muster")
	}
	join := ""
	if a.fleet.control {
		join = queue
	}
	for _, verb := range []string{"ensure", "preview", "status", "ping"} {
		subject, said := "muster."+verb+".all", requests
		var heard atomic.Int32
		done := make(chan struct{}, 1)
		if _, err := nc.QueueSubscribe(subject, join, func(m *nats.Msg) {
			if string(m.Data) != "end" {
				heard.Add(1)
				return
			}
			done <- struct{}{}
		}); err != nil {
			a.t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			a.t.Fatal(err)
		}
		for range requests {
			a.fleet.say(a.t, subject, "{}")
		}
		// A member of the queue gets an end at last.
		kvtest.Eventually(a.t, "end of requests", func() (bool, string) {
			a.fleet.say(a.t, subject, "end")
			said++
			select {
			case <-done:
				return true, ""
			case <-time.After(100 * time.Millisecond):
				return false, "not heard"
			}
		})
		if n := heard.Load(); n < requests {
			a.notice("%s was not heard by %s %d times", subject, victim, requests-n)
		}
		a.fleet.awaitDone(a.t, verb, said)
	}
	a.fleet.rebase(a)
}

func answerAll(a *attacker) {
	const mark = "evil answer"
	heard := slices.Clone(a.fleet.may[a.limits].Subscribe)
	if a.user == open {
		heard = append(heard, "muster.command.>")
	}
	for _, s := range heard {
		if _, err := a.nc.Subscribe(s, func(m *nats.Msg) {
			if m.Reply != "" {
				_ = a.nc.Publish(m.Reply, []byte(mark))
			}
		}); err != nil {
			a.t.Fatal(err)
		}
	}
	a.flush()
	for _, family := range []string{"group.all", "group.web", "node.web01"} {
		if _, err := a.fleet.admin.Put(a.t.Context(), family+".answered", []byte("{}")); err != nil {
			a.notice("put of %s: %v", family, err)
		}
		if err := a.fleet.admin.PutCommand(a.t.Context(), family, "answered-"+strings.ReplaceAll(family, ".", "-"), []byte("{}"), time.Hour); err != nil {
			a.notice("command of %s: %v", family, err)
		}
	}
	// It has heard all that it may hear, and its answers are out.
	a.last()
	a.flush()
	for _, e := range a.fleet.ears {
		for _, m := range e.fresh(a.t) {
			if e.account == "FLEET" && strings.HasPrefix(m.Subject, "_INBOX.admin.") && string(m.Data) == mark {
				a.notice("%s answered for the server on %s", a.user, m.Subject)
			}
		}
	}
	a.fleet.rebase(a)
}

// rebase accepts what operators did.
func (f *fleet) rebase(a *attacker) {
	a.t.Helper()
	f.last = take(a.t, f.admin.Conn, f.last)
	f.settle(a.t)
	for _, e := range f.ears {
		e.fresh(a.t)
	}
}

func duplicate(a *attacker) {
	next := kvtest.Outgoing(victim, model.KindRun, "stable", 2)
	ids := []string{"", "1", "2", "queued-node-web02", "queued-group-all", "answered-group-all"}
	if a.fleet.control {
		ids = append(ids, next.ID)
	}
	for _, id := range ids {
		for _, subject := range a.writes() {
			a.publish(subject, a.inbox("answer"), nats.Header{nats.MsgIdHdr: {id}}, []byte("{}"))
		}
	}
	a.last()
	ack, err := a.fleet.admin.JetStream().Publish(a.t.Context(), "muster.report."+victim+".run.stable", next.Data, jetstream.WithMsgID(next.ID))
	if err != nil {
		a.t.Fatal(err)
	}
	if ack.Duplicate {
		a.notice("report of %s taken for a duplicate", victim)
	}
	a.fleet.rebase(a)
}

func flood(a *attacker) {
	subscriptions, messages, patience, longest := 1000, 400, kvtest.Deadline/3, time.Duration(0)
	if a.fleet.control {
		patience = deaf
	}
	if whole() {
		subscriptions, messages = 10_000, 5_000
	}
	other := a.fleet.connect(a.t, victim, 0)
	defer other.Close()
	if a.user == open {
		a.publish("$JS.API.STREAM.DELETE.KV_MUSTER_NODES", "", nil, nil)
	}
	// Unread answers do the harm, so the request bypasses the client.
	a.nc.Close()
	flooding := a.fleet.attacker(a.t, a.user, a.limits)
	get := a.fleet.api + ".DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES."
	store := a.own()
	if store == "" {
		store = a.inbox("none")
	}
	large := strings.Repeat("x", int(a.nc.MaxPayload()))
	send := func(line string) { _, _ = flooding.wire.Write([]byte(line)) }
	for i := range subscriptions {
		send(fmt.Sprintf("SUB %s %d\r\n", a.inbox(fmt.Sprint("flood.", i)), 1000+i))
	}
	for i := range messages {
		send(fmt.Sprintf("PUB %s %s 0\r\n\r\n", a.read(), a.inbox("flood.1")))
		if i%200 == 0 {
			send(fmt.Sprintf("PUB %s %d\r\n%s\r\n", store, len(large), large))
			asked := time.Now()
			err := errors.New("not asked")
			// An answer may be lost, so nodes ask again.
			for err != nil && time.Since(asked) < patience {
				_, err = other.Request(get+victim+".state", nil, deaf)
			}
			if err != nil {
				a.notice("no answer for %s: %v", victim, err)
				break
			}
			longest = max(longest, time.Since(asked))
		}
	}
	send(fmt.Sprintf("PUB %s %d\r\n", store, 1<<31-1))
	if other.Stats().Reconnects > 0 || !other.IsConnected() {
		a.notice("%s lost its connection", victim)
	}
	flooding.nc.Close()
	// The answers still arrive, and would close this connection if it subscribed to them.
	a.enter("asked.>")
	// A control has deleted the stream.
	kvtest.Eventually(a.t, "its own state", func() (bool, string) {
		if a.user == open || a.own() == "" {
			return true, ""
		}
		_, err := a.nc.Request(a.own(), []byte("{}"), deaf)
		return err == nil, fmt.Sprint(err, ", after: ", a.nc.LastError())
	})
	a.t.Logf("others waited %s at most", longest.Round(time.Millisecond))
	a.fleet.rebase(a)
}

// say publishes as the administrator, and wants no answer: it would be heard later.
func (f *fleet) say(t testing.TB, subject, text string) {
	t.Helper()
	if err := f.admin.Conn.Publish(subject, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.admin.Conn.FlushTimeout(kvtest.Deadline); err != nil {
		t.Fatal(err)
	}
}
