package attack

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/kvtest"
)

// attacker is a user who does what its client never would.
type attacker struct {
	t     testing.TB
	fleet *fleet
	user  string
	// limits is the user whose permissions name its own subjects.
	limits string
	nc     *nats.Conn
	asked  int
	// consumerless is set when the server made no consumer for it.
	consumerless bool
	// landed lists the ways on which a message reached a target in a control.
	landed map[string]bool

	mu  sync.Mutex
	got []*nats.Msg
	// noticed are breaches that an attack itself found out.
	noticed []string
	waits   map[string]chan struct{}
	wire    net.Conn
}

// attacker connects a user of the fleet, on the first server.
func (f *fleet) attacker(t testing.TB, user, limits string) *attacker {
	t.Helper()
	a := &attacker{t: t, fleet: f, user: user, limits: limits, landed: map[string]bool{}, waits: map[string]chan struct{}{}}
	a.enter(">")

	return a
}

// enter connects and subscribes to these inboxes.
func (a *attacker) enter(inboxes string) {
	a.t.Helper()
	a.nc = a.fleet.connect(a.t, a.user, 0, nats.SetCustomDialer(a))
	a.subscribe(a.inbox(inboxes))
}

func (a *attacker) inbox(name string) string { return "_INBOX_" + a.user + "." + name }

// subscribe notes all that arrives on a subject, if the server allows it.
func (a *attacker) subscribe(subject string, queue ...string) {
	a.t.Helper()
	if _, err := a.nc.QueueSubscribe(subject, strings.Join(queue, ""), a.note); err != nil {
		a.t.Fatalf("subscribe to %s: %v", subject, err)
	}
	a.flush()
}

func (a *attacker) note(m *nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.got = append(a.got, m)
	if done := a.waits[m.Subject]; done != nil {
		delete(a.waits, m.Subject)
		close(done)
	}
}

// flush waits until the server has taken all that was sent.
func (a *attacker) flush() {
	a.t.Helper()
	if err := a.nc.FlushTimeout(kvtest.Deadline); err != nil {
		a.t.Fatal(err)
	}
}

// publish sends a message and reports whether the server let it pass.
func (a *attacker) publish(subject, reply string, header nats.Header, data []byte) bool {
	a.t.Helper()
	if err := a.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Header: header, Data: data}); err != nil {
		a.t.Fatalf("publish on %s: %v, after: %v", subject, err, a.nc.LastError())
	}
	a.flush()
	err := a.nc.LastError()

	return !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), fmt.Sprintf("%q", subject)) && !strings.Contains(err.Error(), fmt.Sprintf("%q", reply))
}

// request sends a message, waits for the first answer, and reports whether there is
// one: none is where the server refuses the message.
func (a *attacker) request(subject string, header nats.Header, data []byte) bool {
	a.t.Helper()
	if a.fleet.control {
		// It may have deleted who would answer.
		return a.try(subject, header, data)
	}
	// Asked again, because an answer may be lost with a connection.
	const tries = 3
	for range tries {
		if sent, answered := a.ask(subject, header, data, kvtest.Deadline/tries); answered || !sent {
			return answered
		}
		a.t.Logf("%s: no answer to %s, asking again; last error: %v, %d reconnects", a.user, subject, a.nc.LastError(), a.nc.Stats().Reconnects)
	}
	a.t.Fatalf("%s: no answer to %s %s %v", a.user, subject, data, a.nc.LastError())

	return false
}

// try is request without an expected responder.
func (a *attacker) try(subject string, header nats.Header, data []byte) bool {
	a.t.Helper()
	_, answered := a.ask(subject, header, data, 200*time.Millisecond)

	return answered
}

func (a *attacker) ask(subject string, header nats.Header, data []byte, patience time.Duration) (sent, answered bool) {
	a.t.Helper()
	a.asked++
	reply, done := a.inbox(fmt.Sprint("asked.", a.asked)), make(chan struct{})
	a.mu.Lock()
	a.waits[reply] = done
	a.mu.Unlock()
	if !a.publish(subject, reply, header, data) {
		return false, false
	}
	select {
	case <-done:
		return true, true
	case <-time.After(patience):
		return true, false
	}
}

// breaches are the secrets that the attacker got to see.
func (a *attacker) breaches() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.noticed
	for _, m := range a.got {
		mark := secret
		if a.limits != attacking && a.fleet.second == "" {
			mark = hidden
		}
		if at := bytes.Index(m.Data, []byte(mark)); at >= 0 {
			out = append(out, fmt.Sprintf("%s learned %.40q on %s", a.user, m.Data[at:], m.Subject))
		}
		if m.Reply != "" && !strings.HasPrefix(m.Subject, "_INBOX_"+a.user) && !a.fleet.heardBy(a.limits)(m.Subject) {
			out = append(out, fmt.Sprintf("%s heard %s", a.user, m.Subject))
		}
	}
	a.got, a.noticed = nil, nil

	return out
}

// own is the subject of a stream that the attacker may write and read; a viewer has none.
func (a *attacker) own() string {
	switch a.limits {
	case viewing:
		return ""
	case operating:
		return a.fleet.theirs("$KV.MUSTER_MANIFESTS.group.web.own")
	case requesting:
		return a.fleet.theirs("$KV.MUSTER_CONTROL.group.web.pause")
	default:
		return a.fleet.theirs("$KV.MUSTER_NODES." + attacking + ".state")
	}
}

// store stores under its own subject, and reports whether that is done.
func (a *attacker) store(header nats.Header, data string) bool {
	a.t.Helper()

	return a.own() == "" || a.request(a.own(), header, []byte(data))
}

// read is the subject of a request for a stored message of the attacker, or otherwise for a readable one.
func (a *attacker) read() string {
	switch a.limits {
	case viewing:
		return a.fleet.theirs(a.api("DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.group.all.own"))
	case operating:
		return a.fleet.theirs(a.api("DIRECT.GET.KV_MUSTER_MANIFESTS." + a.own()))
	case requesting:
		return a.fleet.theirs(a.api("DIRECT.GET.KV_MUSTER_CONTROL." + a.own()))
	default:
		return a.fleet.theirs(a.api("DIRECT.GET.KV_MUSTER_NODES." + a.own()))
	}
}

// last waits for an answer behind all others.
func (a *attacker) last() { a.request(a.read(), nil, nil) }

// api is the subject of a request to JetStream.
func (a *attacker) api(verb string) string { return a.fleet.api + "." + verb }

// Dial connects to the server and keeps the connection, to write on it what a client
// would not.
func (a *attacker) Dial(network, address string) (net.Conn, error) {
	var err error
	a.wire, err = net.Dial(network, address)

	return a.wire, err
}
