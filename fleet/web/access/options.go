package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Options configure the address and the access.
type Options struct {
	// Listen is an IP address, or localhost, with a port.
	Listen string
	// Insecure permits an address beyond loopback without TLS.
	Insecure bool
	// Certificate and Key are PEM files; both or none. They are read again after a change.
	Certificate, Key string
	// Tokens is a file of tokens (NewToken), read again after a change.
	Tokens string
	// URL is the address for browsers if it is not Listen, such as https://muster.example.net behind a proxy.
	URL  string
	OIDC OIDC
}

const groupsClaim = "groups"

// OIDC is a provider of OpenID Connect. The zero value is none.
type OIDC struct {
	// Issuer is the URL of the provider, ClientID the id of muster there.
	Issuer, ClientID string
	// SecretFile is the file of the client secret. The provider must permit the redirect to Options.URL +
	// "/login/callback".
	SecretFile string
	// Scopes are requested besides openid, profile and email. Many providers send groups for the scope "groups".
	Scopes []string
	// Claim is the claim with the groups of a user, "groups" by default.
	Claim string
	// ReadGroups and OperateGroups have these roles.
	ReadGroups, OperateGroups []string
}

// Configured reports whether there is a provider.
func (o OIDC) Configured() bool { return o.Issuer != "" }

// SignsIn reports whether there is a way to sign in.
func (o Options) SignsIn() bool { return o.Tokens != "" || o.OIDC.Configured() }

// Validate returns the first problem of the options, with its flag and the remedy.
func (o Options) Validate() error {
	loopback, err := isLoopback(o.Listen)
	secure := o.Certificate != ""
	switch {
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	case o.Certificate != "" && o.Key == "":
		return errors.New("--tls-cert: also give --tls-key")
	case o.Certificate == "" && o.Key != "":
		return errors.New("--tls-key: also give --tls-cert")
	case !loopback && !secure && !o.Insecure:
		return fmt.Errorf("--listen: %s is not on loopback: others on the network could read and change the data; give --tls-cert FILE and --tls-key FILE (--tlscert and --tlskey are for NATS), or --insecure-listen", o.Listen)
	}
	if err := o.OIDC.validate(o.URL); err != nil {
		return err
	}
	if !loopback && !o.SignsIn() {
		return fmt.Errorf("--listen: %s is not on loopback: anyone could see the fleet; give a file of tokens, or a provider of OpenID Connect", o.Listen)
	}

	if at, err := url.Parse(o.URL); o.URL != "" && (err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || strings.Trim(at.Path, "/") != "" || at.RawQuery != "") {
		return fmt.Errorf("--url: %q is no URL that browsers open: write it as https://muster.example.net", o.URL)
	}

	return nil
}

// validate returns a problem for missing flags, so that a server never starts without the requested sign-in.
func (o OIDC) validate(browsers string) error {
	var missing []string
	for _, f := range []struct {
		name            string
		given, required bool
	}{
		{"oidc-client", o.ClientID != "", true}, {"oidc-secret", o.SecretFile != "", true}, {"oidc-scope", len(o.Scopes) > 0, false},
		{"oidc-claim", o.Claim != "" && o.Claim != groupsClaim, false}, {"oidc-read", len(o.ReadGroups) > 0, false}, {"oidc-operate", len(o.OperateGroups) > 0, false},
	} {
		switch {
		case f.given && !o.Configured():
			return fmt.Errorf("--%s: also give --oidc-issuer", f.name)
		case f.required && !f.given:
			missing = append(missing, "--"+f.name)
		}
	}
	if !o.Configured() {
		return nil
	}
	if browsers == "" {
		missing = append(missing, "--url")
	}
	if len(missing) > 0 {
		return fmt.Errorf("--oidc-issuer: also give %s", strings.Join(missing, " and "))
	}
	if len(o.ReadGroups)+len(o.OperateGroups) == 0 {
		return errors.New("--oidc-issuer: also give --oidc-read or --oidc-operate: without groups no user may sign in")
	}

	return nil
}

// isLoopback reports whether only this machine can connect to an address.
func isLoopback(listen string) (bool, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil || port == "" {
		return false, fmt.Errorf("invalid address %q: write an IP address with a port, such as 127.0.0.1:8420", listen)
	}
	if host == "localhost" {
		return true, nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false, fmt.Errorf("invalid address %q: write an IP address with a port, such as 127.0.0.1:8420 or [::]:8420", listen)
	}

	return ip.Unmap().IsLoopback(), nil
}

// Listen opens the address for a maximum number of connections, with TLS if there is a certificate. A further
// connection closes the oldest one of the network that has most.
func (g *Guard) Listen(ctx context.Context, most int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.options.Listen)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("another process listens on %s: end it, or choose another address", g.options.Listen)
	}
	if err != nil {
		return nil, err
	}
	// TLS must be the outer layer, because the server speaks HTTP/2 only on TLS connections.
	l = newFair(l, most)
	if g.certificate == nil {
		return l, nil
	}

	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.certificate.get(), nil },
	}), nil
}

// URL returns the address of a listener to show to users.
func (g *Guard) URL(l net.Listener) string {
	scheme := "http"
	if g.certificate != nil {
		scheme = "https"
	}

	return scheme + "://" + l.Addr().String() + "/"
}

// fileError returns an error for an unusable file, with its flag and, if the file is missing, the remedy.
func fileError(flag, path, missing string, err error) error {
	failed, is := errors.AsType[*fs.PathError](err)
	if !is || failed.Path != path {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if missing != "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--%s %s: %w (%s)", flag, path, failed.Err, missing)
	}

	return fmt.Errorf("--%s %s: %w", flag, path, failed.Err)
}

const recheck = time.Second

// reloaded holds a value from files, and reads it again after a change. If that fails, it keeps the old value and logs
// the error once.
type reloaded[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu    sync.Mutex
	value T
	stamp string
	next  time.Time
}

// load reads the files for the first time.
func load[T any](log *slog.Logger, read func() (T, error), paths ...string) (*reloaded[T], error) {
	r := &reloaded[T]{paths: paths, read: read, log: log}
	r.stamp = r.stat()
	value, err := read()
	r.value = value

	return r, err
}

func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.next) {
		return r.value
	}
	r.next = now.Add(recheck)
	stamp := r.stat()
	if stamp == r.stamp {
		return r.value
	}
	r.stamp = stamp
	value, err := r.read()
	if err != nil {
		r.log.Error("changed file is invalid, the earlier content stays active", "error", err)
		return r.value
	}
	r.log.Info("a changed file was read again", "files", strings.Join(r.paths, ", "))
	r.value = value

	return r.value
}

// stat returns a text that changes with the files. A replacement may have the same size and time.
func (r *reloaded[T]) stat() string {
	var out strings.Builder
	for _, path := range r.paths {
		var at unix.Stat_t
		if err := unix.Stat(path, &at); err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		fmt.Fprintln(&out, at.Dev, at.Ino, at.Size, at.Mode, at.Uid, at.Mtim, at.Ctim)
	}

	return out.String()
}
