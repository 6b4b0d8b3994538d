package fleetcmd

import (
	"errors"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet/web/access"
)

// AccessFlags holds the flags for sign-in and access to a server.
type AccessFlags struct{ options access.Options }

// Add adds the flags to a command that serves HTTP.
func (f *AccessFlags) Add(cmd *fisk.CmdClause) {
	o := &f.options
	cmd.Flag("insecure-listen", "Permit an address beyond loopback without TLS").UnNegatableBoolVar(&o.Insecure)
	cmd.Flag("tls-cert", "File of the server's certificate, followed by its issuers").PlaceHolder("FILE").StringVar(&o.Certificate)
	cmd.Flag("tls-key", "File of the key of the certificate").PlaceHolder("FILE").StringVar(&o.Key)
	cmd.Flag("tokens", "File of access tokens (see muster fleet token)").PlaceHolder("FILE").SetValue(notEmpty{&o.Tokens})
	cmd.Flag("url", "URL that browsers open, such as the URL of a proxy").PlaceHolder("URL").StringVar(&o.URL)
	cmd.Flag("oidc-issuer", "URL of the OpenID Connect provider that signs users in").PlaceHolder("URL").SetValue(notEmpty{&o.OIDC.Issuer})
	cmd.Flag("oidc-client", "Client id at the provider").PlaceHolder("ID").StringVar(&o.OIDC.ClientID)
	cmd.Flag("oidc-secret", "File of the client's secret").PlaceHolder("FILE").StringVar(&o.OIDC.SecretFile)
	cmd.Flag("oidc-scope", "Additional scope to request, such as groups; repeatable").PlaceHolder("SCOPE").StringsVar(&o.OIDC.Scopes)
	cmd.Flag("oidc-claim", "Claim with the groups of a user").Default("groups").PlaceHolder("NAME").StringVar(&o.OIDC.Claim)
	cmd.Flag("oidc-read", "Group at the provider that may see the fleet; repeatable").PlaceHolder("GROUP").StringsVar(&o.OIDC.ReadGroups)
	cmd.Flag("oidc-operate", "Group at the provider that may also change it; repeatable").PlaceHolder("GROUP").StringsVar(&o.OIDC.OperateGroups)
}

// notEmpty rejects an empty value, such as an unset variable in a script: it would disable sign-in.
type notEmpty struct{ target *string }

// Set sets the value. An empty value is an error.
func (v notEmpty) Set(text string) error {
	if text == "" {
		return errors.New("the value is empty: is a variable unset?")
	}
	*v.target = text

	return nil
}

// String returns the value.
func (v notEmpty) String() string { return *v.target }

// Options returns the access options for a listen address.
func (f *AccessFlags) Options(listen string) access.Options {
	o := f.options
	o.Listen = listen

	return o
}
