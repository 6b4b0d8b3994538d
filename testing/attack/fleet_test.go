package attack

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
	"github.com/musterfleet/muster/testing/natstest"
)

// The nodes: the attacker and its victim.
const (
	attacking = "web01"
	victim    = "web02"
	// viewing and operating are operators who are no administrators; the latter one of
	// the attacker's group.
	viewing, operating = "viewer", "operator"
	// requesting is a dashboard with actions, that has nodes run and preview.
	requesting = "requester"
	// open is a user of the account of operators without any limits.
	open = "open"
	// looking is a viewer of the fleet that is attacked, boarding its dashboard with requests.
	looking, boarding = "looks", "board"
	// secondFleet is the prefix of another fleet on the same server, and secondAdmin its
	// administrator.
	secondFleet, secondAdmin = "lab", "second"
)

// groupsOf are the groups of the nodes. The JWT of one in three of them is longer than servers accept by
// default.
func groupsOf(node string) []string {
	return map[string][]string{attacking: {"web", "linux", "canary"}, victim: {"db"}}[node]
}

// secret marks what a node must not learn, hidden what no operator must either.
const (
	secret = "secret-of-"
	hidden = secret + "hidden-"
)

// fleet is the target of the attacks.
type fleet struct {
	servers []*natstest.Server
	admin   *kvtest.Store
	// api is the prefix of JetStream requests of nodes.
	api string
	// may are the permissions of users with limits.
	may map[string]provision.Permissions
	// login returns the options that make a connection one of a user.
	login func(user string) nats.Option
	// accounts are the accounts of the users.
	accounts map[string]string
	ears     []*ear
	// readers are the stores of users who are shown things.
	readers map[string]*kvtest.Store
	// agent is the agent of the victim; a control has none.
	agent *agent
	// planted is the first observation, last the newest.
	planted, last snapshot
	// control reports whether the attacker is meant to win.
	control bool
	// second is the prefix of the attackers' fleet if it differs.
	second string
}

// oneAccount is a fleet with all users in one account. With a second fleet, attackers belong to that fleet.
func oneAccount(t *testing.T, second string) *fleet {
	t.Helper()
	f := &fleet{api: string(kvstore.OwnAPI), control: true, may: map[string]provision.Permissions{}, login: password, second: second}
	const others = stranger + ": {jetstream: enabled, users: [{user: other, password: other}]}\n"
	users := "{user: admin, password: admin}\n{user: open, password: open}\n{user: second, password: second}\n"
	for _, node := range []string{attacking, victim} {
		f.may[node] = basePermissions(node, groupsOf(node))
	}
	if second != "" {
		f.may[attacking] = kvtest.Must(t, func() (provision.Permissions, error) {
			return provision.NodePermissions(kvstore.OwnAPI, second, attacking, groupsOf(attacking))
		})
	}
	for _, node := range []string{attacking, victim} {
		users += userLine(node, f.may[node])
	}
	f.servers = []*natstest.Server{natstest.Start(t, natstest.WithConfig("accounts: {"+others+"FLEET: {jetstream: enabled, users: [\n"+users+"]}}"))}
	f.populate(t, 1)
	f.ears = []*ear{listen(t, "FLEET", f.connect(t, "admin", 0), f.connect(t, "admin", 0))}

	return f
}

// byConfig is a fleet of two accounts in the configuration of the server.
func byConfig(t *testing.T) *fleet {
	t.Helper()

	return joined(t, layout{servers: []string{""}, replicas: 1, accounts: configuration})
}

// byJWT is byConfig with JWTs.
func byJWT(t *testing.T) *fleet {
	t.Helper()

	return joined(t, layout{servers: []string{""}, replicas: 1, accounts: claims})
}

// besideConfig is byConfig where the attackers are users of another fleet on the same server.
func besideConfig(t *testing.T) *fleet {
	t.Helper()

	return joined(t, layout{servers: []string{""}, replicas: 1, accounts: configuration, second: secondFleet})
}

// besideJWT is besideConfig with JWTs.
func besideJWT(t *testing.T) *fleet {
	t.Helper()

	return joined(t, layout{servers: []string{""}, replicas: 1, accounts: claims, second: secondFleet})
}

// cluster is byConfig on three servers with three replicas. Attacker, victim and administrator connect to one
// server each.
func cluster(t *testing.T) *fleet {
	t.Helper()

	return clusterOf(t, 3)
}

// clusterOf is cluster with another number of replicas.
func clusterOf(t *testing.T, replicas int) *fleet {
	t.Helper()
	var servers, routes []string
	for range 3 {
		routes = append(routes, loopback.Address(t).String())
	}
	for i, listen := range routes {
		servers = append(servers, fmt.Sprintf("server_name: n%d\ncluster: {name: c, listen: %q, routes: [nats://%s]}\n", i, listen, strings.Join(routes, ", nats://")))
	}

	return joined(t, layout{servers: servers, replicas: replicas, accounts: configuration})
}

// layout is how a fleet of several accounts is built.
type layout struct {
	// servers contains the configuration of each server beside its accounts.
	servers  []string
	replicas int
	accounts func(testing.TB, realm) (text string, login func(string) nats.Option)
	// second is the prefix of the attackers' fleet, where it is another one.
	second string
}

// joined starts a fleet of several accounts.
func joined(t *testing.T, l layout) *fleet {
	t.Helper()
	r := realmOf(t, l.second)
	text, login := l.accounts(t, r)
	f := &fleet{api: string(kvstore.JoinedAPI), may: map[string]provision.Permissions{}, accounts: map[string]string{}, login: login, second: l.second, readers: map[string]*kvtest.Store{}}
	for name, u := range r.users {
		f.accounts[name] = u.account
		if u.may != nil {
			f.may[name] = *u.may
		}
	}
	for _, server := range l.servers {
		f.servers = append(f.servers, natstest.Start(t, natstest.WithConfig(server+text)))
	}
	f.populate(t, l.replicas)
	a, last := r.fleets[0], len(l.servers)-1
	f.ears = []*ear{listen(t, a.Fleet.Name, f.connect(t, "admin", last), f.connect(t, "admin", 0))}
	for _, account := range []string{a.Nodes.Name, a.Operators.Name, a.Requesters.Name} {
		f.ears = append(f.ears, listen(t, account, f.connect(t, earOf(account), last/2), f.connect(t, earOf(account), 0)))
	}
	f.serve(t)

	return f
}

// populateSecond provisions the second fleet, if there is one, with its own data.
func (f *fleet) populateSecond(t *testing.T) {
	t.Helper()
	if f.second == "" {
		return
	}
	admin, err := kvtest.Of(f.connect(t, secondAdmin, 0), f.second)
	if err == nil {
		_, err = admin.Apply(t.Context(), provision.Options{})
	}
	for _, key := range []string{"node.web01.own", "group.web.own", "group.all.own"} {
		if err == nil {
			_, err = admin.Put(t.Context(), key, []byte("theirs"))
		}
	}
	if err != nil {
		t.Fatalf("second fleet: %v", err)
	}
}

// theirs returns the name in the attackers' fleet that corresponds to a name of the fleet.
func (f *fleet) theirs(name string) string {
	if f.second == "" {
		return name
	}

	return strings.NewReplacer("MUSTER_", strings.ToUpper(f.second)+"_", "muster.", f.second+".").Replace(name)
}

func userLine(user string, p provision.Permissions) string {
	return fmt.Sprintf("{user: %s, password: %s, %s}\n", user, user, p.ServerConfig())
}

// breach reports whether a message in an account is a breach while a user attacks. In the account of the
// fleet, messages that the user may publish, messages of the server and answers to the user are no breach. In
// other accounts, only subjects with listeners count.
func (f *fleet) breach(account, attacker string) func(subject string) bool {
	own := f.allowed(attacker)
	if account != "FLEET" {
		var others []string
		for name, in := range f.accounts {
			if in == account && name != attacker {
				others = append(others, name)
			}
		}
		heard := f.heardBy(others...)

		return func(subject string) bool { return heard(subject) && !own(subject) }
	}
	// A read request is judged by the answer.
	answers := []string{"$JS.API.DIRECT.GET.>", "$JS.API.STREAM.INFO.>", "$JS.API.STREAM.LIST", "$JS.API.STREAM.MSG.GET.>", "$JS.API.CONSUMER.LIST.>", "_R_.>", "$JS.EVENT.>", "_INBOX_" + attacker + ".>", "_INBOX_open.>", "_INBOX.admin.>", "$SYS.>"}

	return func(subject string) bool { return !own(subject) && !matchesAny(subject, answers) }
}

// allowed reports what a user may publish, by the names that the account of the
// operators has for it, and what the server publishes for that.
func (f *fleet) allowed(user string) func(subject string) bool {
	var own []string
	for _, s := range f.may[user].Publish {
		rest, api := strings.CutPrefix(s, f.api+".")
		if api {
			s = "$JS.API." + rest
		}
		own = append(own, s)
		for _, stream := range f.admin.Names.Streams() {
			r := stream.Config.RePublish
			if r == nil {
				continue
			}
			if key, published := strings.CutPrefix(s, strings.TrimRight(r.Source, ".*>")+"."); published {
				own = append(own, republished(r.Destination, key))
			}
		}
	}

	return func(subject string) bool { return matchesAny(subject, own) }
}

// republished is where the server republishes a key.
func republished(destination, key string) string {
	if start, all := strings.CutSuffix(destination, ">"); all {
		return start + key
	}
	for i, token := range strings.Split(key, ".") {
		destination = strings.ReplaceAll(destination, fmt.Sprintf("{{wildcard(%d)}}", i+1), token)
	}

	return destination
}

// heardBy reports the subjects that users may subscribe to, without their inboxes: an ear subscribes to
// patterns, which never match inboxes.
func (f *fleet) heardBy(users ...string) func(subject string) bool {
	return func(subject string) bool {
		return !strings.HasPrefix(subject, "_INBOX_") &&
			slices.ContainsFunc(users, func(user string) bool { return matchesAny(subject, f.may[user].Subscribe) })
	}
}

// connect connects as a user to one of the servers, and to no other where it is cut off
// as too slow: what an ear hears, and when, depends on its server.
func (f *fleet) connect(t testing.TB, user string, server int, opts ...nats.Option) *nats.Conn {
	t.Helper()
	prefix := "_INBOX_" + user
	if user == "admin" || user == secondAdmin {
		prefix = "_INBOX." + user
	}
	opts = append([]nats.Option{f.login(user), nats.CustomInboxPrefix(prefix), nats.IgnoreDiscoveredServers(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}, opts...)

	return f.servers[server].Connect(t, opts...)
}

// populate provisions the fleet, and has all in it that an attacker could want.
func (f *fleet) populate(t *testing.T, replicas int) {
	t.Helper()
	admin, err := kvtest.Of(f.connect(t, "admin", len(f.servers)-1), "")
	if err != nil {
		t.Fatal(err)
	}
	f.admin = admin
	ctx := t.Context()
	kvtest.Eventually(t, "provisioned", func() (bool, string) {
		_, err := admin.Apply(ctx, provision.Options{Replicas: replicas})
		return err == nil, fmt.Sprint(err)
	})
	kvtest.Eventually(t, "checked", func() (bool, string) {
		err := admin.Check(ctx)
		return err == nil, fmt.Sprint(err)
	})
	// A stream of a cluster that has just begun may have no leader for a moment.
	must := func(what string, do func() error) {
		t.Helper()
		kvtest.Eventually(t, what, func() (bool, string) {
			err := do()
			return err == nil, fmt.Sprint(err)
		})
	}
	value := func(key string) []byte {
		if strings.Contains(key, victim) || strings.Contains(key, ".db.") {
			return []byte(secret + key)
		}
		return []byte("plain")
	}
	for _, key := range []string{"node.web01.own", "node.web02.own", "group.web.own", "group.db.own", "group.all.own"} {
		must("put "+key, func() error { _, err := admin.Put(ctx, key, value(key)); return err })
	}
	for _, key := range []string{"node.web01.pause", "node.web02.pause", "node.web02.labels", "group.web.pause", "group.db.pause", "group.all.pause"} {
		must("write "+key, func() error { _, err := kvstore.NewControl(admin.Store).Put(ctx, key, value(key)); return err })
	}
	must("data", func() error {
		kv, err := admin.JetStream().KeyValue(ctx, "MUSTER_DATA")
		if err == nil {
			_, err = kv.Put(ctx, "site", []byte("a: 1"))
		}
		return err
	})
	must("bundle", func() error {
		_, err := admin.PutBundle(ctx, bytes.NewReader(bytes.Repeat([]byte("bundle"), 50_000)))
		return err
	})
	for _, family := range []string{"node.web01", "node.web02", "group.web", "group.db", "group.all"} {
		must("command", func() error {
			return admin.PutCommand(ctx, family, "queued-"+strings.ReplaceAll(family, ".", "-"), []byte(commandFor(family)), time.Hour)
		})
	}
	for _, node := range []string{attacking, victim} {
		report := kvtest.Outgoing(node, model.KindRun, "stable", 1)
		must("state", func() error {
			return admin.PutState(ctx, model.NodeState{Node: node, Version: secretOf(node)}, time.Hour)
		})
		must("facts", func() error { return admin.PutFacts(ctx, node, model.Facts{"role": secretOf(node)}) })
		must("registration", func() error { return admin.Register(ctx, siteOf(node)) })
		must("report", func() error { return kvtest.Publish(ctx, admin, report) })
	}
	f.dashboard(t)
	js, err := jetstream.New(f.connect(t, "other", 0))
	if err != nil {
		t.Fatal(err)
	}
	must("stream of another account", func() error {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "OTHERS", Description: hidden + "other", Storage: jetstream.MemoryStorage})
		return err
	})
	f.populateSecond(t)
	f.planted = take(t, admin.Conn, nil)
	f.last = f.planted
}

// dashboard is a consumer that acknowledges each report of the victim and has one report unacknowledged. It
// drops the reports of the attacker.
func (f *fleet) dashboard(t *testing.T) {
	t.Helper()
	var c jetstream.Consumer
	kvtest.Eventually(t, "consumer", func() (bool, string) {
		var err error
		c, err = f.admin.JetStream().CreateConsumer(t.Context(), "MUSTER_REPORTS", jetstream.ConsumerConfig{Durable: "dashboard", FilterSubject: "muster.report." + victim + ".>", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Hour})
		return err == nil, fmt.Sprint(err)
	})
	kvtest.Eventually(t, "report", func() (bool, string) {
		_, err := c.Next(jetstream.FetchMaxWait(kvtest.Deadline))
		return err == nil, fmt.Sprint(err)
	})
}

// secretOf returns the secret of a node. An attacker may know only its own.
func secretOf(node string) string {
	if node == victim {
		return secret + node
	}

	return "own"
}

func commandFor(family string) string {
	if slices.Contains(model.Families(attacking, groupsOf(attacking)), family) {
		return "{}"
	}

	return hidden + family
}

// manager manages the streams as the administrator.
func (f *fleet) manager(t *testing.T) *jsm.Manager {
	t.Helper()
	m, err := jsm.New(f.admin.Conn)
	if err != nil {
		t.Fatal(err)
	}

	return m
}
