package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
)

// stranger is another account with JetStream on the same servers, which is none of the
// fleet's.
const stranger = "OTHER"

// user is a user of an account, without permissions one without limits.
type user struct {
	account string
	may     *provision.Permissions
}

// permissions returns the permissions of the user, which joined accounts never extend.
func (u user) permissions() provision.Permissions {
	if u.may == nil {
		return provision.Permissions{Publish: []string{">"}, Subscribe: []string{">"}}
	}

	return *u.may
}

// realm are the accounts and users of one server.
type realm struct {
	// fleets are the fleets; the attacked one is first.
	fleets []provision.Accounts
	users  map[string]user
}

// realmOf returns a realm with an administrator, the nodes, a viewer, an operator per group, an ear in each
// account, and a stranger. With a second fleet, attackers belong to that fleet.
func realmOf(t testing.TB, second string) realm {
	t.Helper()
	r := realm{users: map[string]user{"other": {stranger, nil}}}
	for _, prefix := range slices.Compact([]string{"", second}) {
		r.fleets = append(r.fleets, kvtest.Must(t, func() (provision.Accounts, error) { return provision.AccountsOf(prefix) }))
	}
	a, theirs := r.fleets[0], r.fleets[len(r.fleets)-1]
	r.users["admin"] = user{a.Fleet.Name, nil}
	for _, account := range []string{a.Nodes.Name, a.Operators.Name, a.Requesters.Name} {
		r.users[earOf(account)] = user{account, nil}
	}
	r.node(t, a, "", victim)
	r.operator(t, a, "", "dboperator", victim)
	r.viewer(t, a, "", looking)
	r.requester(t, a, "", boarding)
	if second != "" {
		r.users[secondAdmin] = user{theirs.Fleet.Name, nil}
	}
	r.node(t, theirs, second, attacking)
	r.operator(t, theirs, second, operating, attacking)
	r.viewer(t, theirs, second, viewing)
	r.requester(t, theirs, second, requesting)

	return r
}

func (r realm) requester(t testing.TB, a provision.Accounts, prefix, name string) {
	t.Helper()
	p := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.DashboardPermissions(prefix, name, provision.Serving{Pauses: true, Requests: kvstore.RequesterVerbs()})
	})
	r.users[name] = user{a.Requesters.Name, &p}
}

func (r realm) node(t testing.TB, a provision.Accounts, prefix, node string) {
	t.Helper()
	p := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.NodePermissions(kvstore.JoinedAPI, prefix, node, groupsOf(node))
	})
	r.users[node] = user{a.Nodes.Name, &p}
}

// operator adds one of the groups of a node.
func (r realm) operator(t testing.TB, a provision.Accounts, prefix, name, node string) {
	t.Helper()
	p := kvtest.Must(t, func() (provision.Permissions, error) {
		return provision.OperatorPermissions(prefix, name, groupsOf(node), nil)
	})
	r.users[name] = user{a.Operators.Name, &p}
}

func (r realm) viewer(t testing.TB, a provision.Accounts, prefix, name string) {
	t.Helper()
	p := kvtest.Must(t, func() (provision.Permissions, error) { return provision.ViewerPermissions(prefix, name) })
	r.users[name] = user{a.Operators.Name, &p}
}

// earOf returns the user with which the harness hears all messages of an account.
func earOf(account string) string { return "ear-" + strings.ToLower(account) }

// configuration returns the accounts as configuration of the server, and how users
// log in.
func configuration(_ testing.TB, r realm) (text string, login func(string) nats.Option) {
	all := provision.Users{}
	for name, u := range r.users {
		all[u.account] = append(all[u.account], fmt.Sprintf("{user: %q, password: %q, %s}\n", name, name, u.permissions().ServerConfig()))
	}
	text = fmt.Sprintf("accounts: {\n%s: {jetstream: enabled, users: [%s]}\n", stranger, all[stranger][0])
	for _, a := range r.fleets {
		// One block has the accounts of all fleets.
		_, accounts, _ := strings.Cut(a.ServerConfig(all), "accounts: {\n")
		text += strings.TrimSuffix(accounts, "}\n")
	}

	return text + "}\n", password
}

// password logs in a user with its name as password.
func password(user string) nats.Option { return nats.UserInfo(user, user) }

// claims is configuration where an operator of NATS has issued JWTs.
func claims(t testing.TB, r realm) (text string, login func(string) nats.Option) {
	t.Helper()
	operator, system := kvtest.KeyPair(t, nkeys.CreateOperator), kvtest.KeyPair(t, nkeys.CreateAccount)
	pairs, keys := map[string]nkeys.KeyPair{}, map[string]string{}
	add := func(name string) {
		pairs[name] = kvtest.KeyPair(t, nkeys.CreateAccount)
		keys[name] = kvtest.Public(t, pairs[name])
	}
	add(stranger)
	accounts := map[string]*jwt.AccountClaims{stranger: jwt.NewAccountClaims(keys[stranger])}
	for _, a := range r.fleets {
		for _, account := range a.All() {
			add(account.Name)
		}
		maps.Copy(accounts, kvtest.Must(t, func() (map[string]*jwt.AccountClaims, error) {
			return a.Claims(provision.Signer{Keys: keys, Activate: func(account string, c *jwt.ActivationClaims) (string, error) { return c.Encode(pairs[account]) }})
		}))
		accounts[stranger].Limits.JetStreamLimits = accounts[a.Fleet.Name].Limits.JetStreamLimits
	}
	text = fmt.Sprintf("max_control_line: "+provision.ControlLine+"\noperator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n", kvtest.Signed(t, jwt.NewOperatorClaims(kvtest.Public(t, operator)), operator),
		kvtest.Public(t, system), kvtest.Public(t, system), kvtest.Signed(t, jwt.NewAccountClaims(kvtest.Public(t, system)), operator))
	for name, c := range accounts {
		text += keys[name] + ": " + kvtest.Signed(t, c, operator) + "\n"
	}
	logins := map[string]nats.Option{}
	for name, u := range r.users {
		pair := kvtest.KeyPair(t, nkeys.CreateUser)
		c := jwt.NewUserClaims(kvtest.Public(t, pair))
		c.UserPermissionLimits = u.permissions().Claims()
		logins[name] = nats.UserJWTAndSeed(kvtest.Signed(t, c, pairs[u.account]), string(kvtest.Must(t, pair.Seed)))
	}

	return text + "}\n", func(user string) nats.Option { return logins[user] }
}
