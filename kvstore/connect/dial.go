// Package connect connects to NATS from options, files, or a context of the nats CLI.
package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/nats-io/jsm.go/natscontext"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// The client reconnects forever. The jitter spreads the reconnects of a fleet.
const (
	reconnectWait   = 2 * time.Second
	reconnectJitter = 3 * time.Second
	connectTimeout  = 5 * time.Second
	// firstTimeout limits the first try of each server if a command has several. One server may hang.
	firstTimeout = 2 * time.Second
	drainTimeout = 10 * time.Second
	// The client leaves a server after two unanswered pings.
	pingInterval = 10 * time.Second
	maxPings     = 1
)

// ErrConnect reports a failed connection: an unknown context, an unreadable file, or an unreachable
// server.
var ErrConnect = errors.New("cannot connect to NATS")

// Options describe how to connect to NATS. They override the options of the context. The default is
// the selected context, or nats://127.0.0.1:4222 if no context is selected.
type Options struct {
	// Context names a context of the nats CLI.
	Context string
	// Servers are URLs. An element may hold several URLs, separated by commas.
	Servers []string
	// Creds is the path of a credentials file, NKey the path of a seed file.
	Creds, NKey string
	// User connects with a password: Password, or the content of PasswordFile, which each connection
	// reads again.
	User, PasswordFile, Password string
	// TLSCA, TLSCert and TLSKey are paths of PEM files.
	TLSCA, TLSCert, TLSKey string
	// Name is the client name in the server's monitoring.
	Name string
	// InboxPrefix is set for nodes, see kvstore.Names.InboxPrefix.
	InboxPrefix string
	// APIPrefix is the prefix of the JetStream API. If the options and the context have none, the
	// store finds it.
	APIPrefix string
	// RetryOnFailedConnect returns a disconnected client if no server answers, and the client keeps
	// trying. Invalid options still return an error.
	RetryOnFailedConnect bool
	// Timeout limits each connection attempt to a server. The default is five seconds. If several
	// servers are given without OnStatus and RetryOnFailedConnect, the first round of attempts uses
	// two seconds.
	Timeout time.Duration
	// OnStatus, if set, is called in order for each denial and each change of the connection, except
	// for its end by Close. Calls never overlap. OnStatus must not block.
	OnStatus func(Status)
}

// Status describes one change of a connection.
type Status struct {
	Connected bool
	// Own reports whether the program itself forced the reconnect.
	Own bool
	// Server is the URL of the connected server, or the list of tried servers. It has no credentials.
	Server string
	// Err is the reason of the loss, or a denial. It may be nil.
	Err error
}

// Dial connects to NATS. The client reconnects forever, so the caller must close it. The error wraps
// ErrConnect.
func Dial(ctx context.Context, o Options) (nc *nats.Conn, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := o.base()
	if wrong := o.Check(); err == nil && len(wrong) > 0 {
		err = wrong[0]
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConnect, err)
	}
	opts := append(b.options, o.identity()...)
	opts = append(opts,
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.DrainTimeout(drainTimeout),
		nats.RetryOnFailedConnect(o.RetryOnFailedConnect),
		// The credentials of a node may be renewed while the client retries.
		nats.IgnoreAuthErrorAbort(),
		checked,
	)
	opts = append(opts, o.handlers(model.StripCredentials(b.servers))...)
	opts = append(opts, ownFirst)
	for _, timeout := range o.timeouts(b.servers) {
		begun := time.Now()
		nc, err = nats.Connect(b.servers, append(opts, nats.Timeout(timeout))...)
		if !isSilent(err) || time.Since(begun) < timeout {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConnect, model.StripCredentials(b.servers), withControlLine(err))
	}

	return nc, nil
}

// timeouts returns the timeout per server for each round of connection attempts.
func (o Options) timeouts(servers string) []time.Duration {
	isLasting := o.OnStatus != nil || o.RetryOnFailedConnect
	if o.Timeout == 0 && !isLasting && strings.Contains(servers, ",") {
		return []time.Duration{firstTimeout, connectTimeout}
	}

	return []time.Duration{cmp.Or(o.Timeout, connectTimeout)}
}

// isSilent reports whether a server may have needed more time. nats.go returns nats.ErrNoServers if
// the last server refused the connection, whatever the others did.
func isSilent(err error) bool {
	var failed net.Error

	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoServers) || errors.As(err, &failed) && failed.Timeout()
}

// Target returns the server URLs without credentials, or "" if the context is unreadable.
func (o Options) Target() string {
	b, err := o.base()
	if err != nil {
		return ""
	}

	return model.StripCredentials(b.servers)
}

// API returns the JetStream API prefix of the options or their context, or "".
func (o Options) API() string {
	b, _ := o.base()

	return b.api
}

// base holds the options of a context, with the servers and the API prefix of Options.
type base struct {
	servers string
	options []nats.Option
	api     string
}

func (o Options) base() (base, error) {
	servers := strings.Join(o.Servers, ",")
	if o.Context == "" && (servers != "" || natscontext.SelectedContext() == "") {
		return base{servers: cmp.Or(servers, nats.DefaultURL), api: apiAt(o.APIPrefix, "")}, nil
	}
	if o.Context != "" && !natscontext.IsKnown(o.Context) {
		return base{}, fmt.Errorf("unknown context %q, known are: %s", o.Context, cmp.Or(strings.Join(natscontext.KnownContexts(), ", "), "none"))
	}
	nctx, err := natscontext.New(o.Context, true)
	if err != nil {
		return base{}, fmt.Errorf("context %q: %w", o.Context, err)
	}
	opts, err := nctx.NATSOptions()
	if err != nil {
		return base{}, fmt.Errorf("context %q: %w", o.Context, err)
	}

	return base{cmp.Or(servers, nctx.ServerURL()), opts, apiAt(cmp.Or(o.APIPrefix, nctx.JSAPIPrefix()), nctx.JSDomain())}, nil
}

func (o Options) identity() []nats.Option {
	var opts []nats.Option
	if o.Name != "" {
		opts = append(opts, nats.Name(o.Name))
	}
	if o.InboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(o.InboxPrefix))
	}
	if o.Creds != "" {
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.NKey != "" {
		opts = append(opts, nkeyOption(o.NKey))
	}
	if o.User != "" {
		opts = append(opts, o.userOption)
	}
	if o.TLSCA != "" {
		opts = append(opts, nats.RootCAs(o.TLSCA))
	}
	if o.TLSCert != "" || o.TLSKey != "" {
		opts = append(opts, nats.ClientCert(o.TLSCert, o.TLSKey))
	}

	return opts
}

// nkeyOption returns an option that reads the seed at connection time.
func nkeyOption(path string) nats.Option {
	return func(opts *nats.Options) error {
		opt, err := nats.NkeyOptionFromSeed(path)
		if err != nil {
			return fmt.Errorf("nkey %s: %w", path, err)
		}

		return opt(opts)
	}
}

// userOption sets user and password, also if a context has others.
func (o Options) userOption(opts *nats.Options) error {
	opts.User, opts.Password = "", ""
	opts.UserInfo = func() (user, password string) {
		if o.PasswordFile == "" {
			return o.User, o.Password
		}
		// If the file is unreadable, the server rejects the empty password and the client reports
		// that.
		text, _ := os.ReadFile(o.PasswordFile)
		return o.User, strings.TrimRight(string(text), "\r\n")
	}

	return nil
}

// handlers returns the options that call OnStatus. nats.go calls them one after the
// other from one goroutine. If the server ends the first connection at once, nats.go
// reports the loss before the connection. handlers then drops the report of the connection.
func (o Options) handlers(servers string) []nats.Option {
	changed := o.OnStatus
	if changed == nil {
		return []nats.Option{nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})}
	}
	lost := false
	down := func(nc *nats.Conn, err error) {
		if !nc.IsClosed() {
			// ForceReconnect reports no error, every other loss does.
			changed(Status{Server: servers, Err: withControlLine(err), Own: err == nil})
		}
	}
	up := func(nc *nats.Conn) { changed(Status{Connected: true, Server: nc.ConnectedUrlRedacted()}) }

	return []nats.Option{
		nats.ConnectHandler(func(nc *nats.Conn) {
			if !lost {
				up(nc)
			}
		}),
		nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			lost = true
			down(nc, err)
		}),
		nats.ReconnectErrHandler(down),
		nats.ErrorHandler(func(nc *nats.Conn, _ *nats.Subscription, err error) {
			changed(Status{Connected: nc.IsConnected(), Server: cmp.Or(nc.ConnectedUrlRedacted(), servers), Err: withControlLine(err)})
		}),
	}
}

// apiAt returns the JetStream API prefix, if necessary from a domain, or "" if both are empty.
func apiAt(prefix, domain string) string {
	if prefix == "" && domain != "" {
		prefix = "$JS." + domain + ".API"
	}

	return strings.TrimSuffix(prefix, ".")
}

// nats-server 2.11 is the first version with message TTLs and batched direct gets.
const minServerMajor, minServerMinor = 2, 11

// ErrServer reports a nats-server that is too old. muster neither reads nor writes there.
var ErrServer = errors.New("nats-server is too old")

// CheckServer returns an error that wraps ErrServer if the version is too old. It accepts versions of
// another form, such as those of source builds.
func CheckServer(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return nil
	}
	if major > minServerMajor || major == minServerMajor && minor >= minServerMinor {
		return nil
	}

	return fmt.Errorf("%w: it has version %s, muster needs %d.%d or later", ErrServer, version, minServerMajor, minServerMinor)
}

// ErrControlLine reports a line longer than the server's max_control_line. Only the CONNECT line with
// the JWT of the user can be that long. The error comes with ErrEnded.
var ErrControlLine = errors.New("maximum control line exceeded")

// withControlLine wraps err with ErrControlLine if the server sent that error. Inside TLS and
// WebSockets only the client reads the server's errors.
func withControlLine(err error) error {
	if err == nil || errors.Is(err, ErrControlLine) || !strings.Contains(strings.ToLower(err.Error()), ErrControlLine.Error()) {
		return err
	}

	return fmt.Errorf("%w: %w", ErrEnded, ErrControlLine)
}
