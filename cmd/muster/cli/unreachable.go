package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/resources/host/web"
)

// Reach describes a connection to NATS, for the remedies of connection errors.
type Reach struct {
	connect.Options
	// Name returns the caller's name of an option: a flag or a key of a file.
	Name func(option string) string
}

// Named replaces the name of an option in an error about its file by the caller's name.
func (r Reach) Named(err error) error {
	if file := (*connect.FileError)(nil); errors.As(err, &file) {
		return &connect.FileError{Option: r.Name(file.Option), Path: file.Path, Err: file.Err}
	}

	return err
}

// Remedy returns the remedy for a connection error, empty if none is known.
func (r Reach) Remedy(err error) string {
	var network *net.OpError
	var untrusted *tls.CertificateVerificationError
	is := func(known ...error) bool {
		for _, k := range known {
			if errors.Is(err, k) {
				return true
			}
		}
		return false
	}
	switch {
	case is(nats.ErrAuthorization):
		return r.credentials()
	case is(connect.ErrControlLine):
		return "set max_control_line: " + provision.ControlLine + " in the configuration of each nats-server and reload it: the JWT of the user is too long for the default of 4 KB"
	case is(nats.ErrSecureConnWanted):
		return "write nats:// instead of tls://"
	case is(nats.ErrSecureConnRequired):
		return "write tls://, and give its authority with " + r.Name("tlsca")
	case errors.As(err, &untrusted):
		return "give the authority that signed it with " + r.Name("tlsca") + ", or correct the host"
	case is(nats.ErrTLS), errors.As(err, &network) && network.Op == "remote error" && strings.Contains(err.Error(), "certificate"):
		// The reason of the server arrives only sometimes.
		return fmt.Sprintf("the server may want the certificate of a client that it trusts: give %s and %s", r.Name("tlscert"), r.Name("tlskey"))
	case web.NetworkRemedy(err) != "":
		return web.NetworkRemedy(err)
	case is(nats.ErrNoInfoReceived, nats.ErrTimeout, io.EOF), errors.As(err, &network) && network.Timeout():
		return "is nats-server running there, and is that its port for clients?"
	case !is(nats.ErrNoServers) && !errors.As(err, &network):
		return ""
	case r.Context != "" || len(r.Servers) > 0:
		return "is nats-server running there?"
	default:
		return fmt.Sprintf("give a server with %s or a NATS context with %s", r.Name("server"), r.Name("context"))
	}
}

// credentials returns the remedy for rejected credentials.
func (r Reach) credentials() string {
	switch {
	case r.User != "" && r.PasswordFile != "":
		return fmt.Sprintf("check user %s, and its password in %s (%s)", r.User, r.PasswordFile, r.Name("password-file"))
	case r.User != "":
		return fmt.Sprintf("check user %s and its password", r.User)
	case r.Creds != "":
		return fmt.Sprintf("check that the server knows the user of %s (%s), and that it has not expired", r.Creds, r.Name("creds"))
	case r.NKey != "":
		return fmt.Sprintf("check that the server has a user with the public key of %s (%s)", r.NKey, r.Name("nkey"))
	case r.Context != "":
		return fmt.Sprintf("check the credentials of context %s (%s)", r.Context, r.Name("context"))
	default:
		return fmt.Sprintf("give other credentials with %s, %s or %s", r.Name("user"), r.Name("creds"), r.Name("nkey"))
	}
}
