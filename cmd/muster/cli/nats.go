package cli

import (
	"cmp"
	"context"
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
	"github.com/musterfleet/muster/kvstore/denial"
	"github.com/musterfleet/muster/kvstore/jsapi"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/model/neterr"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest"
)

// OneAccount is what holds for nodes that are users of the account with the streams.
const OneAccount = "nodes of this account must trust each other; those of an account of their own need not, see muster fleet accounts and docs/fleet.md"

// Store returns the fleet on NATS and connects first where needed. It does not
// check what is provisioned: reading any bucket needs none of it.
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
		e.Log.Warn("secret readable by others", "error", "--"+exposed.Error())
	}
	options.Name = "muster " + Version()
	store, err := kvstore.Open(ctx, options, e.Flags.Prefix)
	if file := (*connect.FileError)(nil); errors.As(err, &file) {
		return nil, fmt.Errorf("--%w", file)
	}
	if err != nil {
		return nil, err
	}
	e.store = store

	return store, nil
}

// askPassword completes the password of a user, whose arguments everyone on the
// machine can see: from the environment, or a terminal.
func (e *Env) askPassword(o *connect.Options) error {
	if o.User == "" || o.PasswordFile != "" {
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
		e.store.Conn().Close()
		e.store = nil
	}
}

// NamesNATS reports whether a server or context of NATS is given, also by the
// environment.
func (e *Env) NamesNATS() bool {
	c := e.Flags.Connect

	return e.Given(ConnectFlags[:]...) || cmp.Or(c.Context, c.Creds, c.NKey, c.User) != "" || len(c.Servers) > 0
}

// ConnectHint adds the remedy to an error to connect.
func (e *Env) ConnectHint(err error) error {
	var network *net.OpError
	switch {
	case denial.IsExplained(err):
		return err
	case errors.Is(err, kvstore.ErrNotPermitted):
		return fmt.Errorf("%w (only administrators, the users of the account with the streams, may do everything)", err)
	case errors.Is(err, jsapi.ErrNoJetStream):
		return fmt.Errorf("%w (add jetstream: enabled to the account of these credentials in nats-server's configuration, or its limits to the JWT of the account; or join the account with the fleet's as muster fleet accounts prints)", err)
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w (is JetStream enabled in nats-server, and for this account?)", err)
	case !errors.Is(err, connect.ErrConnect):
		return err
	case errors.Is(err, nats.ErrAuthorization) && e.Flags.Connect.User != "":
		return fmt.Errorf("%w (the server rejected user %s or the password)", err, e.Flags.Connect.User)
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("%w (give other credentials with --user, --creds or --nkey)", err)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return fmt.Errorf("%w (write nats:// instead of tls://)", err)
	case errors.Is(err, nats.ErrSecureConnRequired):
		return fmt.Errorf("%w (write tls://, and give its authority with --tlsca)", err)
	case errors.Is(err, nats.ErrTLS), errors.As(err, &network) && network.Op == "remote error" && strings.Contains(err.Error(), "certificate"):
		// It depends on timing whether the reason of the server arrives.
		return fmt.Errorf("%w (the server may want the certificate of a client that it trusts: give --tlscert and --tlskey)", err)
	case neterr.Remedy(err) != "":
		return fmt.Errorf("%w (%s)", err, neterr.Remedy(err))
	case !errors.Is(err, nats.ErrNoServers) && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, nats.ErrNoInfoReceived) && !errors.Is(err, io.EOF) && !errors.As(err, &network):
		return err
	case e.Flags.Connect.Context != "" || len(e.Flags.Connect.Servers) > 0:
		return fmt.Errorf("%w (is nats-server running there?)", err)
	default:
		return fmt.Errorf("%w (give a server with --server or a NATS context with --context)", err)
	}
}

// Registrations returns what the function registrations calls. It logs
// registrations that cannot be read, and leaves them out.
func Registrations(log *slog.Logger, open func(context.Context) (*kvstore.Store, error)) manifest.ReadRegistrations {
	return func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error) {
		store, err := open(ctx)
		if err != nil {
			return nil, err
		}
		all, err := FindRegistrations(ctx, log, store, registrations.Filter{Cluster: cluster, Protocol: protocol, Service: service, Address: address})
		out := make([]registration.Registration, len(all))
		for i, r := range all {
			out[i] = r.Registration
		}
		return out, err
	}
}

// FindRegistrations reads registrations. It logs those that cannot be read, and
// leaves them out.
func FindRegistrations(ctx context.Context, log *slog.Logger, store *kvstore.Store, filter registrations.Filter) ([]registrations.Registered, error) {
	all, err := registrations.New(store).Registrations(ctx, filter)
	if errors.Is(err, registrations.ErrInvalidRegistration) {
		log.Warn("invalid registrations left out", "error", err)
		err = nil
	}

	return all, err
}

// PrintDifferences prints what provisioning changes.
func (e *Env) PrintDifferences(planned []provision.Difference) {
	if len(planned) == 0 {
		e.Print.Printf("everything is up to date\n")
	}
	for _, d := range planned {
		if d.Create {
			e.Print.Printf("create %s\n", d.Stream)
		}
		for _, change := range d.Changes {
			e.Print.Printf("change %s: %s\n", d.Stream, change)
		}
	}
}

// RoomHint adds the remedy to an error of a server without room. What was created
// before it stays, so the same command continues from there.
func RoomHint(err error) error {
	if !errors.Is(err, provision.ErrNoRoom) {
		return err
	}

	return fmt.Errorf("%w (run it again with a smaller --report-size, --manifest-size, --command-size or --bundle-size, or raise the limits of the account: max_file and max_streams of its jetstream block, max_file_store of the server's; muster needs seven streams)", err)
}
