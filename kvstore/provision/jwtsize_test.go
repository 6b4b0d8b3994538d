package provision_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// signedSize is how long a JWT of a user is, as nsc makes it: with a name, and signed by a
// signing key.
func signedSize(t *testing.T, p provision.Permissions, name string) int {
	t.Helper()
	c := jwt.NewUserClaims(kvtest.Public(t, kvtest.KeyPair(t, nkeys.CreateUser)))
	c.Name, c.IssuerAccount = name, kvtest.Public(t, kvtest.KeyPair(t, nkeys.CreateAccount))
	c.UserPermissionLimits = p.Claims()

	return len(kvtest.Signed(t, c, kvtest.KeyPair(t, nkeys.CreateAccount)))
}

// groupsOf returns names of groups.
func groupsOf(n int) (groups []string) {
	for i := range n {
		groups = append(groups, fmt.Sprintf("group%d", i))
	}

	return groups
}

// TestTheSizeOfAJWT compares the size with a JWT of the library; all fit into ControlLine.
func TestTheSizeOfAJWT(t *testing.T) {
	t.Parallel()
	for _, node := range []string{"x", "web01", strings.Repeat("webserver-", 6)} {
		for _, groups := range []int{0, 1, 3, model.MaxGroups} {
			p := kvtest.Must(t, func() (provision.Permissions, error) {
				return provision.NodePermissions(kvstore.JoinedAPI, "", node, groupsOf(groups))
			})
			size, want := p.JWTSize(node), signedSize(t, p, node)
			if size != want {
				t.Errorf("%s in %d groups: %d bytes, the library makes %d", node, groups, size, want)
			}
		}
	}
}

// TestALongJWTIsKnownBefore: a server with the default control line of 4 KB accepts exactly the JWTs that
// muster does not call long. A server with ControlLine accepts all.
func TestALongJWTIsKnownBefore(t *testing.T) {
	t.Parallel()
	issuer := kvtest.NewIssuer(t)
	small := natstest.Start(t, natstest.WithConfig(issuer.Config))
	large := natstest.Start(t, natstest.WithConfig("max_control_line: "+provision.ControlLine+"\n"+issuer.Config))
	accepted := func(srv *natstest.Server, node, creds string) bool {
		nc, err := connect.Dial(t.Context(), connect.Options{Servers: []string{srv.URL()}, Creds: creds, Name: "muster agent " + node})
		if err == nil {
			nc.Close()
		} else if !errors.Is(err, connect.ErrControlLine) && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Fatal(err) // the client may still write when the server has read enough
		}
		return err == nil
	}
	long, refused := 0, 0
	for length := 1; length < 40; length += 6 {
		for _, groups := range []int{0, 1, 2, model.MaxGroups} {
			node := strings.Repeat("n", length)
			p := kvtest.Must(t, func() (provision.Permissions, error) {
				return provision.NodePermissions(kvstore.JoinedAPI, "", node, groupsOf(groups))
			})
			creds := issuer.Credentials(t, issuer.Nodes.Name, node, p.Claims())
			isLong, isAccepted := p.JWTSize(node) > provision.LongJWT, accepted(small, node, creds)
			if !isLong && !isAccepted {
				t.Errorf("%s in %d groups has %d bytes, and is refused", node, groups, p.JWTSize(node))
			}
			if !accepted(large, node, creds) {
				t.Errorf("%s in %d groups is refused by %s", node, groups, provision.ControlLine)
			}
			if isLong {
				long++
			}
			if !isAccepted {
				refused++
			}
			if err := os.Remove(creds); err != nil {
				t.Fatal(err)
			}
		}
	}
	if long < refused || refused == 0 || long == 28 {
		t.Errorf("of 28 JWTs %d are called long, %d refused", long, refused)
	}
}
