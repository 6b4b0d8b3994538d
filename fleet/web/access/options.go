package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/sys/unix"
)

// Options say where to listen and who may connect.
type Options struct {
	// Listen is an IP address, or localhost, with a port.
	Listen string
	// Insecure permits an address beyond loopback without TLS.
	Insecure bool
	// Certificate and Key are files in PEM; both or none. They are read again once they change.
	Certificate, Key string
	// Tokens is a file of tokens (NewToken), read again once it changes.
	Tokens string
	// URL is what browsers open where that is not Listen, as behind a proxy:
	// https://muster.example.net.
	URL  string
	OIDC OIDC
}

// groupsClaim is the claim that has the groups of a user where no other one is named.
const groupsClaim = "groups"

// OIDC is a provider of OpenID Connect. The zero value is none.
type OIDC struct {
	// Issuer is the URL of the provider, ClientID what it calls muster.
	Issuer, ClientID string
	// SecretFile has the secret of the client. The provider must permit the redirect to
	// Options.URL + "/login/callback".
	SecretFile string
	// Scopes are asked for besides openid, profile and email: many providers give groups for
	// "groups".
	Scopes []string
	// Claim is the claim that has the groups of a user, "groups" where it is empty.
	Claim string
	// ReadGroups and OperateGroups are those whose members have the role.
	ReadGroups, OperateGroups []string
}

// Configured reports whether there is a provider.
func (o OIDC) Configured() bool { return o.Issuer != "" }

// SignsIn reports whether there is a way to sign in.
func (o Options) SignsIn() bool { return o.Tokens != "" || o.OIDC.Configured() }

// Validate returns what is wrong with the options, with the flag that it is of, and the remedy.
func (o Options) Validate() error {
	loopback, err := isLoopback(o.Listen)
	secure := o.Certificate != ""
	switch {
	case err != nil:
		return fmt.Errorf("--listen: %w", err)
	case o.Certificate != "" && o.Key == "":
		return errors.New("--tls-cert: give --tls-key, too")
	case o.Certificate == "" && o.Key != "":
		return errors.New("--tls-key: give --tls-cert, too")
	case !loopback && !secure && !o.Insecure:
		return fmt.Errorf("--listen: %s is not on loopback: whoever is on the way could read and change what is sent; give --tls-cert FILE and --tls-key FILE (--tlscert and --tlskey are for NATS), or --insecure-listen", o.Listen)
	}
	if err := o.OIDC.validate(o.URL); err != nil {
		return err
	}
	if !loopback && !o.SignsIn() {
		return fmt.Errorf("--listen: %s is not on loopback: anybody could see the fleet; give a file of tokens, or a provider of OpenID Connect", o.Listen)
	}

	if at, err := url.Parse(o.URL); o.URL != "" && (err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || strings.Trim(at.Path, "/") != "" || at.RawQuery != "") {
		return fmt.Errorf("--url: %q is no URL that browsers open: write it as https://muster.example.net", o.URL)
	}

	return nil
}

// flags are those of the provider beside its issuer, with whether they were given.
func (o OIDC) flags() []flag {
	return []flag{
		{"oidc-client", o.ClientID != ""}, {"oidc-secret", o.SecretFile != ""}, {"oidc-scope", len(o.Scopes) > 0},
		{"oidc-claim", o.Claim != "" && o.Claim != groupsClaim}, {"oidc-read", len(o.ReadGroups) > 0}, {"oidc-operate", len(o.OperateGroups) > 0},
	}
}

// flag is one of the command line, and whether it was given.
type flag struct {
	name  string
	given bool
}

// validate returns what is missing: whoever asks for sign-in by one flag is not served without it.
func (o OIDC) validate(browsers string) error {
	if !o.Configured() {
		for _, f := range o.flags() {
			if f.given {
				return fmt.Errorf("--%s: give --oidc-issuer, too", f.name)
			}
		}
		return nil
	}
	var missing []string
	for _, f := range []flag{{"oidc-client", o.ClientID != ""}, {"oidc-secret", o.SecretFile != ""}, {"url", browsers != ""}} {
		if !f.given {
			missing = append(missing, "--"+f.name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("--oidc-issuer: give %s, too", strings.Join(missing, " and "))
	}
	if len(o.ReadGroups)+len(o.OperateGroups) == 0 {
		return errors.New("--oidc-issuer: give --oidc-read or --oidc-operate, too: without groups nobody may sign in")
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

// Listen opens the address for so many connections at the same time, with TLS where there is a
// certificate. One more ends the oldest of the address that has most.
func (g *Guard) Listen(ctx context.Context, most int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.options.Listen)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("another process listens on %s: end it, or choose another address", g.options.Listen)
	}
	if err != nil {
		return nil, err
	}
	// Below TLS: the server speaks HTTP/2 on connections alone that it sees to be of TLS.
	l = newFair(l, most)
	if g.certificate == nil {
		return l, nil
	}

	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.certificate.get(), nil },
	}), nil
}

// URL returns the address to show for what Listen opened.
func (g *Guard) URL(l net.Listener) string {
	scheme := "http"
	if g.certificate != nil {
		scheme = "https"
	}

	return scheme + "://" + l.Addr().String() + "/"
}
