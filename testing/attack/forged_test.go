package attack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/testing/kvtest"
)

// forged are messages on the attacker's subjects with the headers that tell readers the source of a message
// and the end of a list. They win against readers that believe all headers.
func forged() []attack {
	row := func(name, does string, blocks func() []string) attack {
		return attack{
			name: "header-" + name, control: believing, sign: "operators saw", viewed: true, does: does, never: "operators and nodes miss messages of others, or attribute these to them",
			do: func(a *attacker) { a.sendBlocks(blocks()) },
		}
	}

	return []attack{
		row("origin", "stores messages with stream, subject, sequence and time of others in the headers of the server, so that they occur twice", origins),
		row("status", "stores messages with a status of the server, such as the end of a list, in all forms", statuses),
		row("empty-line", "stores messages with an empty line in the headers, which hides the following headers of the server", emptyLines),
		row("unreadable", "stores messages with headers that clients cannot read, or that merge with headers of the server", unreadable),
	}
}

// block returns lines as headers of a message.
func block(lines ...string) string { return "NATS/1.0\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" }

// originOf returns the headers with which the server marks the source of a message.
func originOf(stream, subject string) []string {
	return []string{"Nats-Stream: " + stream, "Nats-Subject: " + subject, "Nats-Sequence: 2", "Nats-Time-Stamp: 2035-01-01T00:00:00Z", "Nats-Last-Sequence: 1"}
}

// othersIn are subjects of others, by stream.
func othersIn() map[string]string {
	return map[string]string{
		"KV_MUSTER_NODES": "$KV.MUSTER_NODES." + victim + ".state", "MUSTER_REPORTS": "muster.report." + victim + ".run.stable",
		"MUSTER_REGISTRATIONS": "muster.registration.lab.http.site." + victim + ".192_0_2_1.80", "KV_MUSTER_MANIFESTS": "$KV.MUSTER_MANIFESTS.group.db.own",
	}
}

func origins() []string {
	var blocks []string
	for stream, subject := range othersIn() {
		lines := originOf(stream, subject)
		blocks = append(blocks, block(lines...), block(append(lines, "KV-Operation: DEL", "Nats-Num-Pending: 0")...), block(lines[1]), block(append(lines, lines...)...))
	}

	return blocks
}

func statuses() []string {
	var blocks []string
	for _, status := range []string{"100", "204", "404", "408", "409", "503"} {
		blocks = append(blocks, block("Status: "+status), block("Status: "+status, "Description: EOB", "Nats-Num-Pending: 0", "KV-Operation: DEL"), "NATS/1.0 "+status+" EOB\r\n\r\n")
	}

	return append(blocks, block("Status: 204"))
}

func emptyLines() []string {
	var blocks []string
	for stream, subject := range othersIn() {
		blocks = append(blocks, block(append(originOf(stream, subject), "", "x")...))
	}

	return append(blocks, block("Status: 204", "", "x"), "NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\n\r\nx\r\n\r\n")
}

func unreadable() []string {
	return []string{
		"NATS/1.0\r\nfoo\r\n\r\n", "NATS/1.0\r\n: x\r\n\r\n", "NATS/1.0\r\n a: b\r\n\r\n", "NATS/1.0\r\n\r\n", "NATS/1.0\r\nStatus: 404\r\nX: ",
		"NATS/1.0\n" + strings.Join(originOf("KV_MUSTER_NODES", "$KV.MUSTER_NODES."+victim+".state"), "\n") + strings.Repeat("\na:b", 150) + "\n\n",
	}
}

// sendBlocks publishes messages with each block of headers on all own subjects, with and without content.
// Then others store messages, so that theirs surround the forged ones.
func (a *attacker) sendBlocks(blocks []string) {
	for _, headers := range blocks {
		for _, subject := range a.writes() {
			for _, data := range []string{"", `{"node":"web02"}`} {
				line := fmt.Sprintf("HPUB %s %s %d %d\r\n%s%s\r\n", subject, a.inbox("answer"), len(headers), len(headers)+len(data), headers, data)
				if _, err := a.wire.Write([]byte(line)); err != nil {
					a.t.Fatal(err)
				}
			}
		}
	}
	a.last()
	for _, breach := range a.fleet.look(a.t, a) {
		a.notice("%s", breach)
	}
	a.fleet.renew(a.t)
	a.fleet.rebase(a)
}

// renew stores the data of the victim and its operators again.
func (f *fleet) renew(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	err := errors.Join(
		f.admin.PutState(ctx, model.NodeState{Node: victim, Version: secretOf(victim)}, time.Hour),
		f.admin.Register(ctx, siteOf(victim)),
	)
	for _, key := range []string{"group.db.own", "node.web02.own"} {
		_, putErr := f.admin.Put(ctx, key, []byte(secret+key))
		err = errors.Join(err, putErr)
	}
	if err != nil {
		t.Fatalf("renew: %v", err)
	}
}

// siteOf is the registration of a node.
func siteOf(node string) registration.Registration {
	return registration.Registration{Cluster: "lab", ProtocolName: "http", Service: "site", Node: node, Address: "192.0.2.1", Port: 80, Priority: 1, TTL: model.TTL(time.Hour)}
}

// view is the data of all nodes except the attacker: as an administrator sees it, as a viewer sees it, who
// reads without consumers, and as the victim sees it.
func (f *fleet) view(t testing.TB, row attack) string {
	t.Helper()
	if row.control == believing && f.control {
		return f.believed(t)
	}
	out := "administrator:\n" + f.shown(t, f.admin)
	if f.accounts != nil {
		out += "viewer:\n" + f.shown(t, f.reader(t, looking)) + "node:\n" + strings.Join(registered(t, f.reader(t, victim)), "\n")
	}

	return out + "\nfacts " + kvtest.FactsOf(t, f.admin.Conn, victim)
}

// reader returns the store of a user.
func (f *fleet) reader(t testing.TB, user string) *kvtest.Store {
	t.Helper()
	if f.readers[user] == nil {
		f.readers[user] = kvtest.BindTo(t, f.connect(t, user, 0))
	}

	return f.readers[user]
}

// shown is what muster shows to a user. What cannot be read has an error, which is
// not shown.
func (f *fleet) shown(t testing.TB, s *kvtest.Store) string {
	t.Helper()
	var out []string
	nodes, _ := s.Nodes(t.Context())
	for _, n := range nodes {
		if n.Node != attacking {
			out = append(out, fmt.Sprintf("%s %+v", n.Node, n.NodeState))
		}
	}
	for r, err := range s.Reports(t.Context(), model.ReportRange{}) {
		if err == nil && r.Node != attacking {
			out = append(out, fmt.Sprintf("report %s %s %s", r.ID, r.Node, r.Data))
		}
	}
	assigned, _ := s.List(t.Context())
	for _, e := range assigned {
		if !strings.HasPrefix(e.Key, "group.web.") {
			out = append(out, fmt.Sprintf("%s is %s, deleted: %v, refused: %s", e.Key, e.Digest, e.Deleted, e.Refused))
		}
	}
	out = append(out, registered(t, s)...)
	f.unread(t)

	return strings.Join(out, "\n") + "\n"
}

// registered are the registrations of all but the attacker.
func registered(t testing.TB, s *kvtest.Store) []string {
	t.Helper()
	var out []string
	all, _ := s.Registrations(t.Context(), kvstore.RegistrationFilter{})
	for _, r := range all {
		if r.Node != attacking {
			out = append(out, fmt.Sprintf("registration %+v", r.Registration))
		}
	}

	return out
}

// unread waits until the consumers of readers are gone. Then the data is compared again.
func (f *fleet) unread(t testing.TB) {
	t.Helper()
	kvtest.Eventually(t, "reading ends", func() (bool, string) {
		f.last = take(t, f.admin.Conn, f.last)
		for stream, h := range f.last {
			for name := range h.consumers {
				if f.planted[stream].consumers[name] == "" {
					return false, name
				}
			}
		}
		return true, ""
	})
}

// believed is what a client reads of all but the attacker that asks for the newest
// message of each subject, and believes all headers.
func (f *fleet) believed(t testing.TB) string {
	t.Helper()
	var out []string
	for stream := range othersIn() {
		out = append(out, f.believedOf(t, stream)...)
	}
	slices.Sort(out)

	return strings.Join(out, "\n")
}

func (f *fleet) believedOf(t testing.TB, stream string) []string {
	t.Helper()
	nc, inbox := f.admin.Conn, nats.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }()
		err = nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, []byte(`{"multi_last":[">"],"batch":1000}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for {
		m, err := sub.NextMsg(kvtest.Deadline)
		if err != nil {
			t.Fatalf("%s has no end: %v", stream, err)
		}
		subject := m.Header.Get(nats.JSSubject)
		switch {
		case m.Header.Get("Status") != "":
			return out
		case !f.allowed(attacking)(subject):
			out = append(out, fmt.Sprintf("%s %s: %x", stream, subject, sha256.Sum256(m.Data)))
		}
	}
}
