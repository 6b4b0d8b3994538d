package fleetsim

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
)

// Users are a server with two accounts and a user for each node.
type Users struct {
	Server *Server
	// Options returns how a node connects; the administrator is the empty name.
	Options func(node string) connect.Options
}

// Names returns the names of some nodes.
func Names(count int) []string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("n%05d", i)
	}

	return names
}

// ByJWT starts a server with users by JWT.
func ByJWT(tb testing.TB, nodes []string, groups ...string) Users {
	tb.Helper()
	issuer := kvtest.NewIssuer(tb)
	files := map[string]string{"": issuer.Credentials(tb, issuer.Fleet.Name, "admin", kvtest.Limitless())}
	for _, node := range nodes {
		files[node] = issuer.Credentials(tb, issuer.Nodes.Name, node, permissionsOf(tb, node, groups).Claims())
	}
	srv := StartServer(tb, issuer.Config)

	return Users{Server: srv, Options: func(node string) connect.Options {
		return connect.Options{Servers: []string{srv.URL(tb)}, Creds: files[node]}
	}}
}

// ByConfig starts a server with users in its configuration.
func ByConfig(tb testing.TB, nodes []string, groups ...string) Users {
	tb.Helper()
	srv := StartServer(tb, Config(tb, nodes, groups...))

	return Users{Server: srv, Options: func(node string) connect.Options {
		o := connect.Options{Servers: []string{srv.URL(tb)}, User: node, Password: node}
		if node == "" {
			o.User, o.Password = "admin", "admin"
		}

		return o
	}}
}

// Config is the configuration of ByConfig.
func Config(tb testing.TB, nodes []string, groups ...string) string {
	tb.Helper()
	accounts, err := provision.AccountsOf("")
	if err != nil {
		tb.Fatal(err)
	}
	users := provision.Users{accounts.Fleet.Name: {"{user: admin, password: admin}"}}
	for _, node := range nodes {
		entry := fmt.Sprintf("{user: %s, password: %s, %s}", node, node, permissionsOf(tb, node, groups).ServerConfig())
		users[accounts.Nodes.Name] = append(users[accounts.Nodes.Name], entry)
	}

	return accounts.ServerConfig(users)
}

func permissionsOf(tb testing.TB, node string, groups []string) provision.Permissions {
	tb.Helper()
	p, err := provision.NodePermissions(kvstore.JoinedAPI, "", node, groups)
	if err != nil {
		tb.Fatal(err)
	}

	return p
}
