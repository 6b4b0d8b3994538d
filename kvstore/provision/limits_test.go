package provision_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/natstest"
)

// A node that connects without end keeps neither administrators nor operators out, and
// other nodes only until a connection is free.
func TestConnectionsOfNodesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 3*2 + 10
	a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") }).For(3)
	byConfig := natstest.Start(t, natstest.WithConfig(provision.ServerLimits(a)+a.ServerConfig(provision.Users{
		a.Fleet.Name: {"{user: admin, password: admin}"}, a.Nodes.Name: {"{user: node, password: node}"}, a.Operators.Name: {"{user: operator, password: operator}"},
	})))
	issuer := kvtest.NewIssuer(t)
	for _, account := range []provision.Account{issuer.Nodes, issuer.Operators} {
		limits := &issuer.Joined[account.Name].Limits
		if limits.Conn != int64(account.Limits.Connections) || limits.Subs != int64(account.Limits.Subscriptions) || limits.Conn <= 0 || limits.LeafNodeConn != 0 {
			t.Errorf("claims of %s: %+v", account.Name, limits)
		}
	}
	issuer.Joined[a.Nodes.Name].Limits.Conn = int64(a.Nodes.Limits.Connections)
	byJWT := natstest.Start(t, natstest.WithConfig(provision.ServerLimits(a)+issuer.ConfigOf(t, issuer.Joined)))
	creds := map[string]string{}
	for user, account := range map[string]string{"admin": a.Fleet.Name, "node": a.Nodes.Name, "operator": a.Operators.Name} {
		creds[user] = issuer.Credentials(t, account, user, kvtest.Limitless())
	}
	for name, dial := range map[string]func(user string) connect.Options{
		"configuration": func(user string) connect.Options {
			return connect.Options{Servers: []string{byConfig.URL()}, User: user, Password: user}
		},
		"jwt": func(user string) connect.Options {
			return connect.Options{Servers: []string{byJWT.URL()}, Creds: creds[user]}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var open []*nats.Conn
			for range most {
				nc, err := connect.Dial(t.Context(), dial("node"))
				if err != nil {
					t.Fatalf("connection %d: %v", len(open), err)
				}
				t.Cleanup(nc.Close)
				open = append(open, nc)
			}
			if nc, err := connect.Dial(t.Context(), dial("node")); !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) {
				t.Errorf("one more than %d: %v, %v", most, nc, err)
			}
			for _, user := range []string{"admin", "operator"} {
				nc, err := connect.Dial(t.Context(), dial(user))
				if err != nil {
					t.Errorf("%s: %v", user, err)
					continue
				}
				t.Cleanup(nc.Close)
			}
			open[0].Close()
			kvtest.Eventually(t, "another node connects", func() (bool, string) {
				nc, err := connect.Dial(t.Context(), dial("node"))
				if err != nil {
					return false, err.Error()
				}
				t.Cleanup(nc.Close)
				return true, ""
			})
		})
	}
}

// The printed limits leave room for administrators, for one fleet and for several.
func TestServerLimitsLeaveRoom(t *testing.T) {
	t.Parallel()
	a := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
	b := kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("lab") }).For(100)
	for _, fleets := range [][]provision.Accounts{{a}, {b}, {a, b}} {
		var connections, sum int
		if _, err := fmt.Sscanf(strings.SplitAfter(provision.ServerLimits(fleets...), "\n")[1], "max_connections: %d", &connections); err != nil {
			t.Fatal(err)
		}
		for _, f := range fleets {
			sum += f.Nodes.Limits.Connections + f.Operators.Limits.Connections
			if f.Fleet.Limits != (provision.AccountLimits{}) || f.Nodes.Limits.Subscriptions == 0 {
				t.Errorf("limits of %+v", f)
			}
		}
		if connections < sum+100 || connections > 65_536 && len(fleets) == 1 {
			t.Errorf("%d connections in all, %d of nodes and operators", connections, sum)
		}
	}
}

// Credentials of nodes and operators are for clients: they are refused where the server
// listens for web sockets, leaf nodes and MQTT.
func TestOtherKindsOfConnectionAreRefused(t *testing.T) {
	t.Parallel()
	config, creds := kvtest.AccountsJWT(t)
	for name, config := range map[string]string{"configuration": kvtest.AccountsConfig(t), "jwt": config} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ports := [3]string{loopback.Address(t).String(), loopback.Address(t).String(), loopback.Address(t).String()}
			authority := natstest.NewAuthority(t)
			cert, key := authority.Issue(t, "server")
			secure := nats.RootCAs(authority.CA)
			srv := natstest.Start(t, natstest.WithConfig(fmt.Sprintf("server_name: hub\ntls: {cert_file: %q, key_file: %q}\nallow_non_tls: true\nwebsocket: {listen: %q, no_tls: true}\nleafnodes: {listen: %q}\nmqtt: {listen: %q}\n",
				cert, key, ports[0], ports[1], ports[2])+config))
			login := func(user string) nats.Option {
				if name == "jwt" {
					return nats.UserCredentials(creds[user])
				}
				return nats.UserInfo(user, user)
			}
			for _, user := range []string{"web01", kvtest.Viewer, kvtest.Operator} {
				srv.Connect(t, login(user))
				srv.Connect(t, login(user), secure)
				// The server may close the connection before the client has written all.
				kvtest.Eventually(t, user+" is refused by the web socket", func() (bool, string) {
					nc, err := nats.Connect("ws://"+ports[0], login(user))
					if err == nil {
						nc.Close()
						t.Errorf("%s connects by a web socket", user)
						return true, ""
					}
					return errors.Is(err, nats.ErrAuthorization), err.Error()
				})
				if name == "jwt" {
					continue
				}
				if answer := says(t, ports[1], fmt.Sprintf("CONNECT {\"user\":%q,\"pass\":%[1]q,\"name\":\"leaf\",\"server_id\":\"leaf\",\"version\":\"2.15.2\"}\r\n", user)); !strings.Contains(answer, "Authorization Violation") {
					t.Errorf("%s as a leaf node: %q", user, answer)
				}
				if answer := says(t, ports[2], mqttConnect(user)); answer != "\x20\x02\x00\x05" {
					t.Errorf("%s by MQTT: %q", user, answer)
				}
			}
			nc, err := nats.Connect("ws://"+ports[0], login("admin"))
			if err != nil {
				t.Fatalf("the listener takes nobody: %v", err)
			}
			nc.Close()
		})
	}
}

// says returns all data that a listener sends until it closes the connection. The listener must read all of
// the text first: unread data can discard its answer.
func says(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(kvtest.Deadline))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	var answer strings.Builder
	_, _ = io.Copy(&answer, bufio.NewReader(conn))

	return answer.String()
}

// mqttConnect is the first packet of a client of MQTT 3.1.1 with a user.
func mqttConnect(user string) string {
	text := func(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
	packet := text("MQTT") + "\x04\xc2\x00\x3c" + text("client-"+user) + text(user) + text(user)

	return "\x10" + string([]byte{byte(len(packet))}) + packet
}
