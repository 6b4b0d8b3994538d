package kvtest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/natstest"
)

// Guarded is a server on which two nodes have their permissions and no more.
type Guarded struct {
	Server *natstest.Server
	Admin  *Store
	// API is the prefix of JetStream requests of nodes: of their account, or of a joined account.
	API kvstore.APIPrefix
	// Connect returns a connection of a node or an operator, as muster makes it.
	Connect func(t *testing.T, user string) *nats.Conn
}

// GroupsOf are the groups of the nodes of a guarded server.
var GroupsOf = map[string][]string{"web01": {"web"}, "web02": {"db"}}

// The operators of a server with several accounts who are no administrators: a viewer, an operator of web01's
// group, a dashboard with actions, and a requester.
const (
	Viewer    = "looks"
	Operator  = "runsweb"
	Dashboard = "wall"
	Requester = "board"
)

// Guards returns every way to guard a server, by name.
func Guards() map[string]func(*testing.T) Guarded {
	return map[string]func(*testing.T) Guarded{"one account": OneAccount, "configuration": ByConfig, "jwt": ByJWT}
}

// PermissionsOf returns the permissions of a node of two accounts.
func PermissionsOf(t *testing.T, node string) provision.Permissions {
	t.Helper()

	return Must(t, func() (provision.Permissions, error) {
		return provision.NodePermissions(kvstore.JoinedAPI, "", node, GroupsOf[node])
	})
}

// Permissions returns the permissions of a node.
func (g Guarded) Permissions(t *testing.T, node string) provision.Permissions {
	t.Helper()
	if g.API == kvstore.OwnAPI {
		return Must(t, func() (provision.Permissions, error) {
			return provision.NodePermissions(kvstore.OwnAPI, "", node, GroupsOf[node])
		})
	}

	return PermissionsOf(t, node)
}

// OneAccount has the nodes as users of the fleet's account.
func OneAccount(t *testing.T) Guarded {
	t.Helper()
	g := Guarded{API: kvstore.OwnAPI}
	users := user("admin", "")
	for node := range GroupsOf {
		users += user(node, g.Permissions(t, node).ServerConfig())
	}

	return g.byPassword(t, "accounts: {FLEET: {jetstream: enabled, users: [\n"+users+"]}}")
}

// ByConfig configures the nodes as users of a separate account in the server's configuration.
func ByConfig(t *testing.T) Guarded {
	t.Helper()

	return Guarded{API: kvstore.JoinedAPI}.byPassword(t, AccountsConfig(t))
}

// AccountsConfig is the configuration of ByConfig. Each user has its name as password.
func AccountsConfig(t *testing.T) string {
	t.Helper()
	a := accounts(t)
	users := provision.Users{a.Fleet.Name: {user("admin", "")}}
	for name, p := range members(t) {
		users[p.account] = append(users[p.account], user(name, p.ServerConfig()))
	}

	return a.ServerConfig(users)
}

// member is a user that is no administrator.
type member struct {
	account string
	provision.Permissions
}

// members returns the users of the joined accounts, by name.
func members(t *testing.T) map[string]member {
	t.Helper()
	a, all := accounts(t), map[string]member{}
	for node := range GroupsOf {
		all[node] = member{a.Nodes.Name, PermissionsOf(t, node)}
	}
	all[Viewer] = member{a.Operators.Name, Must(t, func() (provision.Permissions, error) { return provision.ViewerPermissions("", Viewer) })}
	all[Dashboard] = member{a.Operators.Name, Must(t, func() (provision.Permissions, error) {
		return provision.DashboardPermissions("", Dashboard, provision.Serving{Pauses: true})
	})}
	all[Requester] = member{a.Requesters.Name, RequesterPermissions(t)}
	all[Operator] = member{a.Operators.Name, Must(t, func() (provision.Permissions, error) {
		return provision.OperatorPermissions("", Operator, GroupsOf["web01"], nil)
	})}

	return all
}

// RequesterPermissions returns the permissions of Requester.
func RequesterPermissions(t testing.TB) provision.Permissions {
	t.Helper()

	return Must(t, func() (provision.Permissions, error) {
		return provision.DashboardPermissions("", Requester, provision.Serving{Pauses: true, Requests: kvstore.RequesterVerbs()})
	})
}

func accounts(t testing.TB) provision.Accounts {
	t.Helper()

	return Must(t, func() (provision.Accounts, error) { return provision.AccountsOf("") })
}

// user is one user in the configuration of nats-server.
func user(name, permissions string) string {
	return fmt.Sprintf("{user: %s, password: %s, %s}\n", name, name, permissions)
}

func (g Guarded) byPassword(t *testing.T, config string) Guarded {
	t.Helper()
	srv := natstest.Start(t, natstest.WithConfig(config))

	return g.guard(t, srv, srv.Connect(t, nats.UserInfo("admin", "admin")), func(_ *testing.T, name string) connect.Options {
		return connect.Options{Servers: []string{fmt.Sprintf("nats://%s:%s@127.0.0.1:%d", name, name, srv.Port())}}
	})
}

// ByJWT is ByConfig with the claims of accounts and users, as operators of many
// fleets issue them.
func ByJWT(t *testing.T) Guarded {
	t.Helper()
	config, creds := AccountsJWT(t)
	srv := natstest.Start(t, natstest.WithConfig(config))

	return Guarded{API: kvstore.JoinedAPI}.guard(t, srv, srv.Connect(t, nats.UserCredentials(creds["admin"])), func(_ *testing.T, name string) connect.Options {
		return connect.Options{Servers: []string{srv.URL()}, Creds: creds[name]}
	})
}

// AccountsJWT is the configuration of ByJWT, and the credentials files of its users.
func AccountsJWT(t *testing.T) (config string, creds map[string]string) {
	t.Helper()
	issuer := NewIssuer(t)
	creds = map[string]string{"admin": issuer.Credentials(t, issuer.Fleet.Name, "admin", Limitless())}
	for name, m := range members(t) {
		creds[name] = issuer.Credentials(t, m.account, name, m.Claims())
	}

	return issuer.Config, creds
}

// Issuer has the keys of the accounts of a fleet.
type Issuer struct {
	provision.Accounts
	// Joined are the claims of the accounts, by name.
	Joined map[string]*jwt.AccountClaims
	// Config is the configuration of a server that trusts them.
	Config string

	pairs map[string]nkeys.KeyPair
	// trust begins each configuration: a server keeps the operator that it has.
	trust, dir string
}

// NewIssuer returns an issuer with new keys.
func NewIssuer(t testing.TB) Issuer {
	t.Helper()
	issuer := Issuer{Accounts: accounts(t), pairs: map[string]nkeys.KeyPair{}, dir: t.TempDir()}
	operator, system := KeyPair(t, nkeys.CreateOperator), KeyPair(t, nkeys.CreateAccount)
	issuer.pairs[theOperator] = operator
	issuer.trust = fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n",
		Signed(t, jwt.NewOperatorClaims(Public(t, operator)), operator), Public(t, system),
		Public(t, system), Signed(t, jwt.NewAccountClaims(Public(t, system)), operator))
	keys := map[string]string{}
	for _, account := range issuer.All() {
		issuer.pairs[account.Name] = KeyPair(t, nkeys.CreateAccount)
		keys[account.Name] = Public(t, issuer.pairs[account.Name])
	}
	issuer.Joined = Must(t, func() (map[string]*jwt.AccountClaims, error) {
		return issuer.Claims(provision.Signer{Keys: keys, Activate: func(account string, c *jwt.ActivationClaims) (string, error) { return c.Encode(issuer.pairs[account]) }})
	})
	issuer.Config = issuer.ConfigOf(t, issuer.Joined)

	return issuer
}

// theOperator is the name of the key that signs all accounts.
const theOperator = "operator"

// ConfigOf returns the configuration of a server that trusts the claims of some
// accounts.
func (i Issuer) ConfigOf(t testing.TB, claims map[string]*jwt.AccountClaims) string {
	t.Helper()
	config := i.trust
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		var found jwt.ValidationResults
		if claims[name].Validate(&found); len(found.Issues) > 0 {
			t.Fatalf("claims of %s: %v", name, found.Issues[0])
		}
		config += claims[name].Subject + ": " + Signed(t, claims[name], i.pairs[theOperator]) + "\n"
	}

	return config + "}\n"
}

// Limitless are the claims of a user without restrictions.
func Limitless() jwt.UserPermissionLimits { return jwt.NewUserClaims("limitless").UserPermissionLimits }

// Credentials writes a credentials file of a user of an account.
func (i Issuer) Credentials(t testing.TB, account, name string, p jwt.UserPermissionLimits) string {
	t.Helper()
	file := filepath.Join(i.dir, name+".creds")
	i.WriteCredentials(t, file, account, p)

	return file
}

// WriteCredentials writes credentials of a new user of an account to a file, and
// returns the public key of the user.
func (i Issuer) WriteCredentials(t testing.TB, file, account string, p jwt.UserPermissionLimits) (user string) {
	t.Helper()
	pair := KeyPair(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(Public(t, pair))
	claims.UserPermissionLimits = p
	seed := Must(t, pair.Seed)
	text := Must(t, func() ([]byte, error) { return jwt.FormatUserConfig(Signed(t, claims, i.pairs[account]), seed) })
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}

	return claims.Subject
}

// guard provisions a server as its administrator.
func (g Guarded) guard(t *testing.T, srv *natstest.Server, admin *nats.Conn, options func(*testing.T, string) connect.Options) Guarded {
	t.Helper()
	store, err := Of(admin, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	g.Server, g.Admin = srv, store
	g.Connect = func(t *testing.T, user string) *nats.Conn {
		t.Helper()
		o := options(t, user)
		o.InboxPrefix = kvstore.InboxPrefix(user)
		// A user that does all of its job is refused nothing.
		o.OnStatus = func(s connect.Status) {
			if errors.Is(s.Err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", user, s.Err)
			}
		}
		nc, err := connect.Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)

		return nc
	}

	return g
}

// Must returns a result, and fails the test where there is an error.
func Must[T any](t testing.TB, f func() (T, error)) T {
	t.Helper()
	result, err := f()
	if err != nil {
		t.Fatal(err)
	}

	return result
}

// KeyPair returns a new key.
func KeyPair(t testing.TB, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()

	return Must(t, create)
}

// Public returns the public part of a key.
func Public(t testing.TB, kp nkeys.KeyPair) string {
	t.Helper()

	return Must(t, kp.PublicKey)
}

// Signed returns claims as a JWT.
func Signed(t testing.TB, claims jwt.Claims, by nkeys.KeyPair) string {
	t.Helper()

	return Must(t, func() (string, error) { return claims.Encode(by) })
}
