package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/loopback"
)

// movingFleet is a fleet on one account of a server. Its nodes move to a second account while changes are
// put.
type movingFleet struct {
	t       *testing.T
	dir     string
	address string
	server  *exec.Cmd
	said    *output
	// nodes are all, joined those that have moved.
	nodes, joined []string
	puts          sync.WaitGroup
	// put counts the changes of each node.
	put    int
	agents map[string]*process
	// login contains the flags with which a user connects.
	login func(user string) []string
}

// newMovingFleet returns a fleet without a server. Its users log in by name.
func newMovingFleet(t *testing.T) *movingFleet {
	t.Helper()
	f := &movingFleet{t: t, dir: t.TempDir(), address: loopback.Address(t).String(), nodes: []string{"web01", "web02", "web03"}, agents: map[string]*process{}}
	f.login = func(user string) []string {
		return []string{"--server", fmt.Sprintf("nats://%s:%s@%s", user, user, f.address)}
	}

	return f
}

// The configurations of the server, one after the other.
const (
	noAccounts = iota
	oneAccount
	twoAccounts
)

// configure writes the configuration of the server, with the users where they are
// now: of two accounts as muster prints these.
func (f *movingFleet) configure(accounts int) {
	f.t.Helper()
	user := func(name string, flags ...string) string {
		permissions := muster(f.t, f.dir, append([]string{"fleet", "permissions", name}, flags...)...)
		write(f.t, filepath.Join(f.dir, name+".conf"), permissions)

		return fmt.Sprintf("      {user: %s, password: %s, include %q}\n", name, name, name+".conf")
	}
	fleet, nodes := "      {user: admin, password: admin}\n", ""
	for _, node := range f.nodes {
		if slices.Contains(f.joined, node) {
			nodes += user(node)
		} else {
			fleet += user(node, "--one-account")
		}
	}
	var block string
	switch accounts {
	case noAccounts:
		block = "authorization: {users: [\n" + fleet + "]}\n"
	case oneAccount:
		block = "accounts: {FLEET: {jetstream: enabled, users: [\n" + fleet + "]}}\n"
	case twoAccounts:
		block = muster(f.t, f.dir, "fleet", "accounts")
		for old, users := range map[string]string{"{user: admin, password: \"change me\"}\n": fleet, "{user: web01, password: \"change me too\", include \"web01.conf\"}\n": nodes} {
			if strings.Count(block, old) != 1 {
				f.t.Fatalf("no place for users in\n%s", block)
			}
			block = strings.Replace(block, old, users, 1)
		}
	}
	write(f.t, filepath.Join(f.dir, "nats.conf"), fmt.Sprintf("listen: %q\njetstream: {store_dir: %q}\n%s", f.address, f.dir+"/js", block))
}

// reload has the server take over its configuration.
func (f *movingFleet) reload() {
	f.t.Helper()
	before := strings.Count(f.said.String(), "Reloaded server configuration")
	if err := f.server.Process.Signal(syscall.SIGHUP); err != nil {
		f.t.Fatal(err)
	}
	await(f.t, "the server has reloaded", func() bool {
		return strings.Count(f.said.String(), "Reloaded server configuration") > before
	})
}

// start starts the server, and returns what stops it.
func (f *movingFleet) start() (stop func()) {
	f.t.Helper()
	f.said = &output{}
	program, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	f.server = exec.CommandContext(f.t.Context(), program)
	f.server.Env = append(os.Environ(), serverVariable+"="+filepath.Join(f.dir, "nats.conf"))
	f.server.Stdout, f.server.Stderr = f.said, f.said
	if err := f.server.Start(); err != nil {
		f.t.Fatal(err)
	}
	server, said := f.server, f.said
	stop = sync.OnceFunc(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		if f.t.Failed() {
			f.t.Log(said)
		}
	})
	f.t.Cleanup(stop)
	await(f.t, "the server is ready", func() bool { return strings.Contains(said.String(), "Server is ready") })

	return stop
}

// nameAccount moves the streams of a server without accounts into an account.
func (f *movingFleet) nameAccount(stop func()) {
	f.t.Helper()
	stop()
	streams := filepath.Join(f.dir, "js", "jetstream")
	if err := os.Rename(filepath.Join(streams, "$G"), filepath.Join(streams, "FLEET")); err != nil {
		f.t.Fatal(err)
	}
	f.configure(oneAccount)
	f.start()
}

// file is what a change makes on a node.
func (f *movingFleet) file(node string, change int) string {
	return filepath.Join(f.dir, node, "files", fmt.Sprint(change))
}

// change puts a manifest for each node, as any client of NATS does.
func (f *movingFleet) change(ctx context.Context, kv jetstream.KeyValue) error {
	for _, node := range f.nodes {
		manifest := fmt.Sprintf("muster:\n  resources:\n    - file:\n        - %s: {content: x, owner: '%d', group: '%d', mode: '0644'}\n", f.file(node, f.put), os.Geteuid(), os.Getegid())
		if _, err := kv.PutString(ctx, fmt.Sprintf("node.%s.c%d", node, f.put), manifest); err != nil {
			return err
		}
	}
	f.put++

	return nil
}

// changes puts changes until ctx ends.
func (f *movingFleet) changes(ctx context.Context, kv jetstream.KeyValue) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := f.change(context.WithoutCancel(ctx), kv); err != nil {
				f.t.Errorf("change %d: %v", f.put, err)
				return
			}
		}
	}
}

// operate runs muster as the administrator.
func (f *movingFleet) operate(args ...string) string {
	f.t.Helper()

	return muster(f.t, f.dir, append(args, f.login("admin")...)...)
}

// populate provisions the fleet, and starts the agents with a first change, which it
// puts by nc.
func (f *movingFleet) populate(nc *nats.Conn) jetstream.KeyValue {
	f.t.Helper()
	f.operate("fleet", "init")
	for _, node := range f.nodes {
		if err := os.MkdirAll(filepath.Join(f.dir, node, "files"), 0o755); err != nil {
			f.t.Fatal(err)
		}
		f.agents[node] = start(f.t, filepath.Join(f.dir, node, "state"), append([]string{"agent", "run", "--config-dir", f.dir, "--node", node}, f.login(node)...)...)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		f.t.Fatal(err)
	}
	kv, err := js.KeyValue(f.t.Context(), "MUSTER_MANIFESTS")
	if err == nil {
		err = f.change(f.t.Context(), kv)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	for _, node := range f.nodes {
		await(f.t, node+" runs in the first account", func() bool { return exists(f.file(node, 0)) })
	}

	return kv
}

// connections counts how often a node has connected.
func (f *movingFleet) connections(node string) int {
	return strings.Count(f.agents[node].text.String(), "connected to NATS")
}

// move moves each node by a step, after a first one, while changes are put.
func (f *movingFleet) move(kv jetstream.KeyValue, first func(), step func(node string)) {
	f.t.Helper()
	putting, stop := context.WithCancel(f.t.Context())
	defer stop()
	f.puts.Go(func() { f.changes(putting, kv) })
	first()
	for _, node := range f.nodes {
		before := f.connections(node)
		step(node)
		await(f.t, node+" goes on in its new account", func() bool { return f.connections(node) > before })
	}
	stop()
	f.puts.Wait()
	if err := f.change(f.t.Context(), kv); err != nil {
		f.t.Fatal(err)
	}
}

// missedNothing checks that all nodes have all changes, and stops them.
func (f *movingFleet) missedNothing() {
	f.t.Helper()
	for _, node := range f.nodes {
		for i := range f.put {
			await(f.t, fmt.Sprintf("%s takes change %d of %d", node, i, f.put), func() bool { return exists(f.file(node, i)) })
		}
	}
	if reports := f.operate("fleet", "reports", "--no-follow", "--since", "1h", "--kind", "node", "--outcome", "unassigned"); strings.Contains(reports, "unassigned") {
		f.t.Errorf("assignments ended:\n%s", reports)
	}
	if nodes := f.operate("fleet", "nodes"); strings.Contains(nodes, "rejected") || strings.Contains(nodes, "unreachable") {
		f.t.Errorf("nodes:\n%s", nodes)
	}
	for _, node := range f.nodes {
		f.agents[node].signal(syscall.SIGTERM)
		if code, text := f.agents[node].wait(); code != 0 || f.t.Failed() {
			f.t.Errorf("%s ended with %d\n%s", node, code, text)
		}
	}
}

// connect connects as the administrator.
func (f *movingFleet) connect(url string, opts ...nats.Option) *nats.Conn {
	f.t.Helper()
	nc, err := nats.Connect(url, append(opts, nats.Timeout(deadline), nats.MaxReconnects(-1))...)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)

	return nc
}

// TestAFleetMovesToTwoAccounts moves the nodes to a second account while changes are put, step by step like
// docs/security.md. No node misses a change or loses its assignments.
func TestAFleetMovesToTwoAccounts(t *testing.T) {
	f := newMovingFleet(t)
	f.configure(noAccounts)
	stopServer := f.start()
	kv := f.populate(f.connect("nats://admin:admin@" + f.address))
	f.nameAccount(stopServer)
	for _, node := range f.nodes {
		await(t, node+" goes on with one account", func() bool { return f.connections(node) > 1 })
	}
	f.move(kv, func() {
		f.configure(twoAccounts)
		f.reload()
		f.reload()
	}, func(node string) {
		f.joined = append(f.joined, node)
		f.configure(twoAccounts)
		f.reload()
	})
	f.missedNothing()
}

// TestAccountsAreJoinedByTheSecondReload adds the accounts and moves all users in one reload. Nodes and
// operators then get no answer, and their errors name the remedy. After another reload they continue without
// a restart.
func TestAccountsAreJoinedByTheSecondReload(t *testing.T) {
	f := newMovingFleet(t)
	f.configure(oneAccount)
	f.start()
	kv := f.populate(f.connect("nats://admin:admin@" + f.address))
	f.joined = f.nodes
	f.configure(twoAccounts)
	f.reload()
	const remedy = "reload it a second time"
	for _, node := range f.nodes {
		await(t, node+" names the remedy", func() bool { return strings.Contains(f.agents[node].text.String(), remedy) })
	}
	if code, text := start(t, f.dir, append([]string{"fleet", "ls", "--inbox-prefix", "_INBOX_web01"}, f.login("web01")...)...).wait(); code == 0 || !strings.Contains(text, remedy) {
		t.Errorf("a command of a user of NODES ended with %d, without the remedy:\n%s", code, text)
	}
	if err := f.change(t.Context(), kv); err != nil {
		t.Fatal(err)
	}
	f.reload()
	f.missedNothing()
}

// TestAFleetMovesToTwoAccountsByJWT makes the same move with JWTs: a node gets credentials of its new
// account, and the old ones are revoked. The last node is in three groups, so the server rejects its long JWT
// by default. The agent and the commands name the setting that permits it.
func TestAFleetMovesToTwoAccountsByJWT(t *testing.T) {
	f, issuer := newMovingFleet(t), kvtest.NewIssuer(t)
	credentials := func(user string) string { return filepath.Join(f.dir, user+".creds") }
	f.login = func(user string) []string {
		return []string{"--server", "nats://" + f.address, "--creds", credentials(user)}
	}
	setting := ""
	trust := func(claims map[string]*jwt.AccountClaims) {
		t.Helper()
		write(t, filepath.Join(f.dir, "nats.conf"), fmt.Sprintf("listen: %q\n%sjetstream: {store_dir: %q}\n%s", f.address, setting, f.dir+"/js", issuer.ConfigOf(t, claims)))
	}
	permissions := func(node string, flags ...string) (p jwt.UserPermissionLimits) {
		t.Helper()
		dir := filepath.Join(f.dir, "claims")
		muster(t, f.dir, append([]string{"fleet", "permissions", node, "--jwt", "--dir", dir}, flags...)...)
		text, err := os.ReadFile(filepath.Join(dir, node+".json"))
		if err == nil {
			err = json.Unmarshal(text, &p)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	fleet, users := issuer.Fleet.Name, map[string]string{}
	issuer.WriteCredentials(t, credentials("admin"), fleet, kvtest.Limitless())
	for _, node := range f.nodes {
		users[node] = issuer.WriteCredentials(t, credentials(node), fleet, permissions(node, "--one-account"))
	}
	alone := *issuer.Joined[fleet]
	alone.Exports = nil
	trust(map[string]*jwt.AccountClaims{fleet: &alone})
	f.start()
	kv := f.populate(f.connect("nats://"+f.address, nats.UserCredentials(credentials("admin"))))
	grouped, groups := f.nodes[len(f.nodes)-1], []string{"web", "linux", "canary"}
	f.move(kv, func() {
		trust(issuer.Joined)
		f.reload()
	}, func(node string) {
		var flags []string
		if node == grouped {
			f.operate("fleet", "group", node, "+web", "+linux", "+canary", "--timeout", "0")
			flags = []string{"--groups", strings.Join(groups, ",")}
		}
		issuer.WriteCredentials(t, credentials(node), issuer.Nodes.Name, permissions(node, flags...))
		issuer.Joined[fleet].Revoke(users[node])
		trust(issuer.Joined)
		f.reload()
		if node == grouped {
			f.namesTheSetting(node)
			setting = "max_control_line: 64KB\n"
			trust(issuer.Joined)
			f.reload()
		}
	})
	f.assigned(kv, grouped, groups)
	f.missedNothing()
}

// namesTheSetting checks that a node and a command report a JWT that is too long.
func (f *movingFleet) namesTheSetting(node string) {
	f.t.Helper()
	const remedy = "set max_control_line: 64KB"
	await(f.t, node+" names the setting", func() bool { return strings.Contains(f.agents[node].text.String(), remedy) })
	if code, text := start(f.t, f.dir, append([]string{"fleet", "ls"}, f.login(node)...)...).wait(); code == 0 || !strings.Contains(text, "maximum control line exceeded") || !strings.Contains(text, remedy) {
		f.t.Errorf("a command with the credentials of %s ended with %d, without the remedy:\n%s", node, code, text)
	}
}

// assigned checks that a node runs the assignments of its groups.
func (f *movingFleet) assigned(kv jetstream.KeyValue, node string, groups []string) {
	f.t.Helper()
	for _, group := range groups {
		file := filepath.Join(f.dir, node, "files", group)
		manifest := fmt.Sprintf("muster:\n  resources:\n    - file:\n        - %s: {content: x, owner: '%d', group: '%d', mode: '0644'}\n", file, os.Geteuid(), os.Getegid())
		if _, err := kv.PutString(f.t.Context(), "group."+group+".app", manifest); err != nil {
			f.t.Fatal(err)
		}
		await(f.t, node+" runs what group "+group+" has", func() bool { return exists(file) })
	}
}
