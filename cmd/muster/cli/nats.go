package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/manifest"
)

// OneAccount is the warning about nodes in the account of the streams.
const OneAccount = "nodes of this account must trust each other; for isolation, give nodes a separate account (see muster fleet accounts and docs/fleet/accounts.md)"

// Store returns the fleet's store. It connects to NATS at its first call. It does not check the provisioning.
func (e *Env) Store(ctx context.Context) (*kvstore.Store, error) {
	if e.store != nil {
		return e.store, nil
	}
	if _, err := kvstore.NewNames(e.Flags.Prefix); err != nil {
		return nil, Usagef("--prefix: %w", err)
	}
	options := e.Flags.Connect
	if err := e.askPassword(&options); err != nil {
		return nil, err
	}
	for _, exposed := range options.Exposed() {
		e.Log.Warn("secret readable by others", "error", e.reach().Named(exposed))
	}
	e.Flags.Connect.Password = options.Password
	options.Name = "muster " + Version()
	store, err := kvstore.Open(ctx, options, e.Flags.Prefix)
	if err != nil {
		return nil, e.reach().Named(err)
	}
	e.store = store

	return store, nil
}

// OpenAnother returns the fleet's store on a second connection. Call Store first, because it prompts for a
// password. OpenAnother calls onStatus after each change of the connection. The caller closes the store.
func (e *Env) OpenAnother(ctx context.Context, onStatus func(connect.Status)) (*kvstore.Store, error) {
	options := e.Flags.Connect
	options.Name, options.OnStatus = "muster "+Version(), onStatus

	return kvstore.Open(ctx, options, e.Flags.Prefix)
}

// askPassword reads the password of a user from the environment or a terminal. It is not a flag, because
// other users of the machine can read arguments.
func (e *Env) askPassword(o *connect.Options) error {
	if o.User == "" || o.PasswordFile != "" || o.Password != "" {
		return nil
	}
	if o.Password = os.Getenv(envPassword); o.Password != "" {
		return nil
	}
	if !e.asksPeople() {
		return Usagef("--user %s needs --password-file FILE or %s", o.User, envPassword)
	}
	fmt.Fprintf(e.Print.Err, "Password of %s: ", print.Text(o.User))
	var err error
	o.Password, err = e.Stdin.(*input).password()
	fmt.Fprintln(e.Print.Err)

	return err
}

// Close closes the connection to NATS.
func (e *Env) Close() {
	if e.store != nil {
		e.store.Conn.Close()
		e.store = nil
	}
}

// NamesNATS reports whether a server or NATS context is set by a flag or the environment.
func (e *Env) NamesNATS() bool {
	c := e.Flags.Connect

	return e.Given(ConnectFlags[:]...) || cmp.Or(c.Context, c.Creds, c.NKey, c.User) != "" || len(c.Servers) > 0
}

// ConnectHint adds the remedy to a connection error.
func (e *Env) ConnectHint(err error) error {
	switch {
	case kvstore.IsExplained(err):
		return err
	case errors.Is(err, model.ErrNotPermitted):
		return fmt.Errorf("%w (only administrators have all permissions: users of the account with the streams)", err)
	case errors.Is(err, kvstore.ErrNoJetStream):
		return fmt.Errorf("%w (enable JetStream for the account of these credentials: with jetstream: enabled in the configuration of %s, or with limits in the account's JWT; or join the account with the fleet's, see muster fleet accounts)", err, e.server())
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w (is JetStream enabled in %s, and for this account?)", err, e.server())
	case !errors.Is(err, connect.ErrConnect):
		return err
	}
	if remedy := e.reach().Remedy(err); remedy != "" {
		return fmt.Errorf("%w (%s)", err, remedy)
	}

	return err
}

// reach returns the options of the flags, with the names of the flags.
func (e *Env) reach() Reach {
	return Reach{Options: e.Flags.Connect, Name: func(option string) string { return "--" + option }}
}

// server returns the name and the address of the server.
func (e *Env) server() string {
	if e.store == nil || !e.store.Conn.IsConnected() {
		return "nats-server"
	}

	return "nats-server at " + e.store.Conn.ConnectedUrlRedacted()
}

// Registrations returns the implementation of the function registrations. It logs and omits unreadable
// registrations.
func Registrations(log *slog.Logger, open func(context.Context) (*kvstore.Store, error)) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error) {
		store, err := open(ctx)
		if err != nil {
			return nil, err
		}
		all, err := FindRegistrations(ctx, log, store, kvstore.RegistrationFilter{Cluster: cluster, Protocol: protocol, Service: service, Address: address})
		out := make([]registration.Registration, len(all))
		for i, r := range all {
			out[i] = r.Registration
		}
		return out, err
	}
}

// FindRegistrations returns registrations. It logs and omits unreadable registrations.
func FindRegistrations(ctx context.Context, log *slog.Logger, store *kvstore.Store, filter kvstore.RegistrationFilter) ([]kvstore.Registered, error) {
	all, err := kvstore.NewRegistrations(store).Registrations(ctx, filter)
	if errors.Is(err, registration.ErrInvalid) {
		log.Warn("invalid registrations left out", "error", err)
		err = nil
	}

	return all, err
}

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
		return "is nats-server running there, and is this its client port?"
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
