package kvtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/permissions"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/natstest"
)

// Guarded is a server on which two nodes have their permissions and no more.
type Guarded struct {
	Server *natstest.Server
	Admin  *Store
	// Connect returns a connection of a node, as the agent makes it.
	Connect func(t *testing.T, node string) *nats.Conn
}

// GroupsOf are the groups of the nodes of a guarded server.
var GroupsOf = map[string][]string{"web01": {"web"}, "web02": {"db"}}

// PermissionsOf returns the permissions of a node of a guarded server.
func PermissionsOf(t *testing.T, node string) permissions.Permissions {
	t.Helper()
	p, err := permissions.Of("", node, GroupsOf[node])
	if err != nil {
		t.Fatal(err)
	}

	return p
}

// ByConfig guards with users in the server's configuration.
func ByConfig(t *testing.T) Guarded {
	t.Helper()
	users := "{user: admin, password: admin}\n"
	for node := range GroupsOf {
		users += fmt.Sprintf("{user: %s, password: %s, %s}\n", node, node, PermissionsOf(t, node).ServerConfig())
	}
	srv := natstest.Start(t, natstest.WithConfig("accounts: {FLEET: {jetstream: enabled, users: [\n"+users+"]}}"))

	return guard(t, srv, srv.Connect(t, nats.UserInfo("admin", "admin")), func(t *testing.T, node string) kvstore.ConnectOptions {
		return kvstore.ConnectOptions{Servers: []string{fmt.Sprintf("nats://%s:%s@127.0.0.1:%d", node, node, srv.Port())}}
	})
}

// ByJWT guards with the claims of users, as operators of many fleets do.
func ByJWT(t *testing.T) Guarded {
	t.Helper()
	operator, system, fleet := KeyPair(t, nkeys.CreateOperator), KeyPair(t, nkeys.CreateAccount), KeyPair(t, nkeys.CreateAccount)
	account := jwt.NewAccountClaims(Public(t, fleet))
	account.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	config := fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n%s: %s\n}\n",
		signed(t, jwt.NewOperatorClaims(Public(t, operator)), operator), Public(t, system),
		Public(t, system), signed(t, jwt.NewAccountClaims(Public(t, system)), operator),
		Public(t, fleet), signed(t, account, operator))
	srv := natstest.Start(t, natstest.WithConfig(config))
	creds := func(name string, p jwt.Permissions) string {
		user := KeyPair(t, nkeys.CreateUser)
		claims := jwt.NewUserClaims(Public(t, user))
		claims.Permissions = p
		seed, err := user.Seed()
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.FormatUserConfig(signed(t, claims, fleet), seed)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name+".creds")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}

		return file
	}
	files := map[string]string{}
	for node := range GroupsOf {
		files[node] = creds(node, PermissionsOf(t, node).Claims())
	}

	return guard(t, srv, srv.Connect(t, nats.UserCredentials(creds("admin", jwt.Permissions{}))), func(_ *testing.T, node string) kvstore.ConnectOptions {
		return kvstore.ConnectOptions{Servers: []string{srv.URL()}, Creds: files[node]}
	})
}

// guard provisions a server as its administrator.
func guard(t *testing.T, srv *natstest.Server, admin *nats.Conn, options func(*testing.T, string) kvstore.ConnectOptions) Guarded {
	t.Helper()
	store, err := Of(admin, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	connect := func(t *testing.T, node string) *nats.Conn {
		t.Helper()
		o := options(t, node)
		o.InboxPrefix = store.Names().InboxPrefix(node)
		// A node that does all of its job is refused nothing.
		o.OnStatus = func(s kvstore.ConnectionStatus) {
			if errors.Is(s.Err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", node, s.Err)
			}
		}
		nc, err := kvstore.Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)

		return nc
	}

	return Guarded{Server: srv, Admin: store, Connect: connect}
}

// KeyPair returns a new key.
func KeyPair(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	kp, err := create()
	if err != nil {
		t.Fatal(err)
	}

	return kp
}

// Public returns the public part of a key.
func Public(t *testing.T, kp nkeys.KeyPair) string {
	t.Helper()
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}

	return key
}

func signed(t *testing.T, claims jwt.Claims, by nkeys.KeyPair) string {
	t.Helper()
	text, err := claims.Encode(by)
	if err != nil {
		t.Fatal(err)
	}

	return text
}
