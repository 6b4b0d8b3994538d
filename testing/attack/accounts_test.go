package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/kvstore/permissions"
	"github.com/musterfleet/muster/testing/kvtest"
)

// stranger is another account with JetStream on the same servers, which is none of the
// fleet's.
const stranger = "OTHER"

// user is a user of an account, without permissions one without limits.
type user struct {
	account string
	may     *permissions.Permissions
}

// permissions returns those of the user: of nobody, joined accounts permit nothing.
func (u user) permissions() permissions.Permissions {
	if u.may == nil {
		return permissions.Permissions{Publish: []string{">"}, Subscribe: []string{">"}}
	}

	return *u.may
}

// accountsOf are the accounts as muster prints them.
func accountsOf(t testing.TB) permissions.Accounts {
	t.Helper()

	return kvtest.Must(t, func() (permissions.Accounts, error) { return permissions.AccountsOf("") })
}

// usersOf returns the users of a fleet of two accounts: the administrator, the nodes,
// a viewer and operators of one group each, an ear in each account, and a stranger.
func usersOf(t testing.TB) map[string]user {
	t.Helper()
	a := accountsOf(t)
	users := map[string]user{
		"admin": {a.Fleet.Name, nil}, "other": {stranger, nil},
		earOf(a.Nodes.Name): {a.Nodes.Name, nil}, earOf(a.Operators.Name): {a.Operators.Name, nil},
	}
	for _, node := range []string{attacking, victim} {
		p := kvtest.Must(t, func() (permissions.Permissions, error) { return permissions.Of("", node, groupsOf(node)) })
		users[node] = user{a.Nodes.Name, &p}
	}

	v := kvtest.Must(t, func() (permissions.Permissions, error) { return permissions.Viewer("", viewing) })
	users[viewing] = user{a.Operators.Name, &v}
	for name, node := range map[string]string{operating: attacking, "dboperator": victim} {
		p := kvtest.Must(t, func() (permissions.Permissions, error) { return permissions.Operator("", name, groupsOf(node), nil) })
		users[name] = user{a.Operators.Name, &p}
	}

	return users
}

// earOf is the user by which the harness hears all that is published in an account.
func earOf(account string) string { return "ear-" + strings.ToLower(account) }

// configuration returns the accounts as configuration of the server, and how users
// log in.
func configuration(t testing.TB, users map[string]user) (text string, login func(string) nats.Option) {
	t.Helper()
	all := permissions.Users{}
	for name, u := range users {
		all[u.account] = append(all[u.account], fmt.Sprintf("{user: %q, password: %q, %s}", name, name, u.permissions().ServerConfig()))
	}
	text = accountsOf(t).ServerConfig(all)

	return strings.Replace(text, "accounts: {\n", fmt.Sprintf("accounts: {\n%s: {jetstream: enabled, users: [%s]}\n", stranger, all[stranger][0]), 1), password
}

// password logs in a user whose password is its name.
func password(user string) nats.Option { return nats.UserInfo(user, user) }

// claims is configuration where an operator of NATS has issued JWTs.
func claims(t testing.TB, users map[string]user) (text string, login func(string) nats.Option) {
	t.Helper()
	a := accountsOf(t)
	operator, system := kvtest.KeyPair(t, nkeys.CreateOperator), kvtest.KeyPair(t, nkeys.CreateAccount)
	pairs, keys := map[string]nkeys.KeyPair{}, map[string]string{}
	for _, name := range []string{a.Fleet.Name, a.Nodes.Name, a.Operators.Name, stranger} {
		pairs[name] = kvtest.KeyPair(t, nkeys.CreateAccount)
		keys[name] = kvtest.Public(t, pairs[name])
	}
	accounts := kvtest.Must(t, func() (map[string]*jwt.AccountClaims, error) {
		return a.Claims(permissions.Signer{Keys: keys, Activate: func(c *jwt.ActivationClaims) (string, error) { return c.Encode(pairs[a.Fleet.Name]) }})
	})
	accounts[stranger] = jwt.NewAccountClaims(keys[stranger])
	accounts[stranger].Limits.JetStreamLimits = accounts[a.Fleet.Name].Limits.JetStreamLimits
	text = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n", kvtest.Signed(t, jwt.NewOperatorClaims(kvtest.Public(t, operator)), operator),
		kvtest.Public(t, system), kvtest.Public(t, system), kvtest.Signed(t, jwt.NewAccountClaims(kvtest.Public(t, system)), operator))
	for name, c := range accounts {
		text += keys[name] + ": " + kvtest.Signed(t, c, operator) + "\n"
	}
	logins := map[string]nats.Option{}
	for name, u := range users {
		pair := kvtest.KeyPair(t, nkeys.CreateUser)
		c := jwt.NewUserClaims(kvtest.Public(t, pair))
		c.Permissions = u.permissions().Claims()
		logins[name] = nats.UserJWTAndSeed(kvtest.Signed(t, c, pairs[u.account]), string(kvtest.Must(t, pair.Seed)))
	}

	return text + "}\n", func(user string) nats.Option { return logins[user] }
}
