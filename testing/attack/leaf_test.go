package attack

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
)

const leafNodes = "a user with the credentials of a node, a viewer, an operator or a dashboard with requests connects as a leaf node, where the server permits it, and " +
	"writes lines of its protocol: subscriptions, messages on subjects of others, requests with reply subjects of others, identities of other accounts, " +
	"acknowledgements. No data of others changes or is heard. The server closes the connection at most lines. The control is an administrator."

// leaf is a connection that claims to be of a server which joins the account of a user.
type leaf struct {
	a       *attacker
	address string
	conn    net.Conn
	pongs   chan struct{}
	ended   chan struct{}

	mu    sync.Mutex
	heard []string
}

// join connects, if there is no connection.
func (l *leaf) join() {
	l.a.t.Helper()
	if l.conn != nil {
		select {
		case <-l.ended:
		default:
			return
		}
	}
	conn, err := net.Dial("tcp", l.address)
	if err != nil {
		l.a.t.Fatal(err)
	}
	l.conn, l.pongs, l.ended = conn, make(chan struct{}, 16), make(chan struct{})
	go l.hear(conn, l.pongs, l.ended)
	l.write(fmt.Sprintf(`CONNECT {"user":%q,"pass":%[1]q,"verbose":false,"headers":true,"name":"leaf-%[1]s","server_id":"leaf","version":"2.15.2"}`+"\r\n", l.a.user))
}

// leave ends the connection.
func (l *leaf) leave() {
	_ = l.conn.Close()
	<-l.ended
}

// try writes lines, on a new connection if need be, and waits until the server has taken
// them or has closed the connection.
func (l *leaf) try(lines string) {
	l.a.t.Helper()
	l.join()
	l.write(lines)
}

func (l *leaf) write(lines string) {
	l.a.t.Helper()
	_, _ = l.conn.Write([]byte(lines + "PING\r\n"))
	select {
	case <-l.pongs:
	case <-l.ended:
	case <-time.After(kvtest.Deadline):
		l.a.t.Fatalf("neither taken nor refused: %s", lines)
	}
}

// hear keeps all that the server sends on a connection.
func (l *leaf) hear(conn net.Conn, pongs, ended chan struct{}) {
	defer close(ended)
	for lines := bufio.NewReader(conn); ; {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			return
		case strings.HasPrefix(line, "PONG"):
			pongs <- struct{}{}
		case strings.HasPrefix(line, "PING"):
			_, _ = conn.Write([]byte("PONG\r\n"))
		default:
			l.mu.Lock()
			l.heard = append(l.heard, line)
			l.mu.Unlock()
		}
	}
}

// learned returns what the leaf heard of others.
func (l *leaf) learned() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(l.heard), func(line string) bool { return !strings.Contains(line, secret) })
}

// message is one of the protocol of leaf nodes.
func message(subject, reply, header, data string) string {
	if reply != "" {
		subject += " " + reply
	}
	if header != "" {
		return fmt.Sprintf("HMSG %s %d %d\r\n%s%s\r\n", subject, len(header), len(header)+len(data), header, data)
	}

	return fmt.Sprintf("LMSG %s %d\r\n%s\r\n", subject, len(data), data)
}

// listen subscribes to subjects of other users.
func (l *leaf) listen() {
	for _, subject := range []string{">", "*.>", "muster.ensure.node.web02", "muster.command.>", "$KV.>", "_INBOX.admin.>", "_INBOX_web02.>"} {
		l.try("LS+ " + subject + "\r\n")
		l.a.fleet.bait(l.a)
	}
}

// attack writes what would change something.
func (l *leaf) attack() {
	for _, t := range targets(l.a.fleet) {
		for _, subject := range t.subjects {
			if l.a.allowed(subject) {
				continue
			}
			l.try(message(subject, "", "", t.payload))
			for _, s := range l.a.sources(t.payload) {
				l.try(message(s.subject, subject, "", s.body))
			}
		}
	}
	l.try("LS+ " + l.a.inbox("leaf") + "\r\n")
	for _, account := range []string{stranger, "FLEET", "SYS", "$SYS", "$G"} {
		for _, info := range []string{`{"acc":%q}`, `{"svc":%q}`, `{"acc":%q,"svc":%[1]q,"reply":"muster.ensure.all"}`} {
			l.try(message(l.a.api("STREAM.LIST"), l.a.inbox("leaf"), "NATS/1.0\r\nNats-Request-Info: "+fmt.Sprintf(info, account)+"\r\n\r\n", "{}"))
		}
	}
	for _, subject := range []string{"$JS.ACK.MUSTER_REPORTS.dashboard.1.1.1.1.0", "$JS.ACK.MUSTER_REPORTS.dashboard.1.1.1.1.0@muster.ensure.all", "_R_.evil", "_GR_.evil.x.muster.ensure.all"} {
		l.try(message(subject, "muster.ensure.all", "", ""))
	}
}

func TestLeafNodesHold(t *testing.T) {
	t.Parallel()
	address := loopback.Address(t).String()
	config := fmt.Sprintf("server_name: hub\nleafnodes: {listen: %q}\n", address)
	// The permissions that are printed refuse leaf nodes (kvstore/provision.TestOtherKindsOfConnectionAreRefused).
	allowing := func(t testing.TB, r realm) (string, func(string) nats.Option) {
		text, login := configuration(t, r)
		return strings.ReplaceAll(text, `["STANDARD"]`, `["STANDARD", "LEAFNODE"]`), login
	}
	f := joined(t, layout{servers: []string{config}, replicas: 1, accounts: allowing})
	for _, user := range []string{attacking, operating, viewing, requesting, "admin"} {
		t.Run(user, func(t *testing.T) {
			a := f.attacker(t, user, user)
			defer a.nc.Close()
			if user == "admin" {
				a.limits, f.api = attacking, string(kvstore.OwnAPI)
			}
			l := &leaf{a: a, address: address}
			l.listen()
			l.attack()
			breaches := f.look(t, a)
			for _, line := range l.learned() {
				breaches = append(breaches, fmt.Sprintf("%s learned %.100q", user, line))
			}
			l.leave()
			if user != "admin" {
				if len(breaches) > 0 {
					t.Error(some(breaches))
				}
				return
			}
			for _, sign := range []string{"is gone", "did: \"command evil", "stored KV_MUSTER_NODES", "admin learned \"" + secret} {
				if !slices.ContainsFunc(breaches, func(b string) bool { return strings.Contains(b, sign) }) {
					t.Errorf("no %q of an administrator: %s", sign, some(breaches))
				}
			}
		})
	}
}
