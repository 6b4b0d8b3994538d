package provision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// An answer of the fleet enters no other import of the same export, whatever its reply subject. The server
// does not promise this, but the isolation depends on it, so the pinned server is tested.
func TestAnswersDoNotLeaveTheAccount(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T, config string) []*natstest.Server{
		"one server": func(t *testing.T, config string) []*natstest.Server {
			return []*natstest.Server{natstest.Start(t, natstest.WithConfig(config))}
		},
		"cluster": func(t *testing.T, config string) []*natstest.Server {
			servers := natstest.StartCluster(t, config)
			return servers[:]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := provision.AccountsOf("")
			if err != nil {
				t.Fatal(err)
			}
			// No permissions hold the attackers.
			everything := provision.Permissions{Publish: []string{">"}, Subscribe: []string{">"}}.ServerConfig()
			c := newCourier(t, start(t, a.ServerConfig(provision.Users{
				a.Fleet.Name:      {"{user: admin, password: admin}"},
				a.Nodes.Name:      {"{user: node, password: node, " + everything + "}"},
				a.Operators.Name:  {"{user: operator, password: operator, " + everything + "}"},
				a.Requesters.Name: {"{user: requester, password: requester, " + everything + "}", "{user: ear, password: ear, " + everything + "}"},
			})))
			// What the fleet passes on to requesters are answers of nodes, and none of the server to them.
			answers, passed := listen(t, c.servers[0].Connect(t, nats.UserInfo("ear", "ear"))), []string{"muster.answer.courier.courier"}
			c.deliver(t, "node", "fleet.API", c.targets(a.Nodes, local), nil)
			c.deliver(t, "operator", "fleet.API", c.targets(a.Operators, local), nil)
			c.deliver(t, "requester", "fleet.API", c.targets(a.Requesters, local), nil)
			if got := answers(passed); len(got) > 0 {
				t.Errorf("answers of the server reached requesters: %q", got)
			}
			// The same answers do arrive where a user of the fleet's own account asks.
			reached := c.targets(a.Nodes, inFleet)
			c.deliver(t, "admin", "$JS.API", reached, reached)
			kvtest.Eventually(t, "answers to requesters", func() (bool, string) {
				got := answers(passed)
				return len(got) > 0, fmt.Sprint(got)
			})
		})
	}
}

// courier has the server publish for it.
type courier struct{ servers []*natstest.Server }

func newCourier(t *testing.T, servers []*natstest.Server) courier {
	t.Helper()
	admin, err := kvtest.Of(servers[0].Connect(t, nats.UserInfo("admin", "admin")), "")
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "provisioned", func() (bool, string) {
		_, err := admin.Apply(t.Context(), provision.Options{Replicas: len(servers)})
		return err == nil, fmt.Sprint(err)
	})
	kvtest.Eventually(t, "stored", func() (bool, string) {
		_, err := kvtest.PlainKV(t, admin.Conn, "MUSTER_NODES").PutString(t.Context(), "evil.state", "courier")
		return err == nil, fmt.Sprint(err)
	})

	return courier{servers}
}

// local and inFleet are the names of the import in the account and in the fleet's account.
func local(i provision.Import) string {
	if i.Local != "" {
		return i.Local
	}

	return i.Subject
}

func inFleet(i provision.Import) string { return i.Subject }

// targets are subjects that an account publishes to the fleet, where an answer would do
// harm.
func (courier) targets(a provision.Account, name func(provision.Import) string) []string {
	var all []string
	for _, i := range a.Imports {
		// A request for a list through an answer looks like any other request.
		if i.Service && !strings.HasSuffix(i.Subject, ".LIST") {
			all = append(all, strings.NewReplacer("*", "courier", ">", "courier.x").Replace(name(i)))
		}
	}

	return all
}

// deliver asks in every way for an answer on every target, and waits until they have
// arrived where they are asked for. reached are the subjects of the fleet's account
// that they reach.
func (c courier) deliver(t *testing.T, user, api string, targets, reached []string) {
	t.Helper()
	fleet := c.servers[0].Connect(t, nats.UserInfo("admin", "admin"))
	heard := listen(t, fleet)
	nc := c.servers[len(c.servers)-1].Connect(t, nats.UserInfo(user, user))
	arrived := listen(t, nc)
	requests := []string{
		api + ".DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES.evil.state",
		api + ".DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES.none.state",
		api + ".STREAM.LIST",
	}
	for _, target := range targets {
		for _, request := range requests {
			if err := nc.PublishRequest(request, target, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	kvtest.Eventually(t, user+"'s answers", func() (bool, string) {
		got := arrived(targets)
		return len(got) == len(targets)*len(requests), fmt.Sprint(got)
	})
	if err := fleet.Flush(); err != nil {
		t.Fatal(err)
	}
	a, err := provision.AccountsOf("")
	if err != nil {
		t.Fatal(err)
	}
	within := slices.Concat(c.targets(a.Nodes, inFleet), c.targets(a.Operators, inFleet))
	// Other servers of a cluster may forward messages later.
	kvtest.Eventually(t, user+"'s answers in the fleet", func() (bool, string) {
		got := heard(within)
		return len(got) >= len(reached)*len(requests), fmt.Sprint(got)
	})
	if got := heard(within); len(got) != len(reached)*len(requests) {
		t.Errorf("%s reached %d times: %q", user, len(got), got)
	}
}

// listen subscribes to all permitted subjects and returns the messages of some.
func listen(t *testing.T, nc *nats.Conn) func(subjects []string) []string {
	t.Helper()
	sub, err := nc.SubscribeSync(">")
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	var heard []string

	return func(subjects []string) []string {
		for {
			m, err := sub.NextMsg(0)
			if err != nil {
				return heard
			}
			if slices.Contains(subjects, m.Subject) {
				heard = append(heard, m.Subject)
			}
		}
	}
}
