package fleetcmd

import (
	"errors"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/fleet/web/access"
)

// AccessFlags are those that say who may connect.
type AccessFlags struct{ options access.Options }

// Add adds the flags to a command that serves.
func (f *AccessFlags) Add(cmd *fisk.CmdClause) {
	o := &f.options
	cmd.Flag("insecure-listen", "Permit an address beyond loopback without TLS").UnNegatableBoolVar(&o.Insecure)
	cmd.Flag("tls-cert", "File of the server's certificate, followed by its issuers").PlaceHolder("FILE").StringVar(&o.Certificate)
	cmd.Flag("tls-key", "File of the key of the certificate").PlaceHolder("FILE").StringVar(&o.Key)
	cmd.Flag("tokens", "File of access tokens (see muster fleet token)").PlaceHolder("FILE").SetValue(notEmpty{&o.Tokens})
	cmd.Flag("url", "What browsers open, as behind a proxy").PlaceHolder("URL").StringVar(&o.URL)
	cmd.Flag("oidc-issuer", "URL of a provider of OpenID Connect, which signs users in").PlaceHolder("URL").SetValue(notEmpty{&o.OIDC.Issuer})
	cmd.Flag("oidc-client", "Client id at the provider").PlaceHolder("ID").StringVar(&o.OIDC.ClientID)
	cmd.Flag("oidc-secret", "File of the client's secret").PlaceHolder("FILE").StringVar(&o.OIDC.SecretFile)
	cmd.Flag("oidc-scope", "Further scope to ask for, such as groups; repeatable").PlaceHolder("SCOPE").StringsVar(&o.OIDC.Scopes)
	cmd.Flag("oidc-claim", "Claim that has the groups of a user").Default("groups").PlaceHolder("NAME").StringVar(&o.OIDC.Claim)
	cmd.Flag("oidc-read", "Group at the provider that may see the fleet; repeatable").PlaceHolder("GROUP").StringsVar(&o.OIDC.ReadGroups)
	cmd.Flag("oidc-operate", "Group at the provider that may also change it; repeatable").PlaceHolder("GROUP").StringsVar(&o.OIDC.OperateGroups)
}

// notEmpty rejects what an unset variable of a script leaves: it would serve without sign-in.
type notEmpty struct{ target *string }

// Set takes a value that is not empty.
func (v notEmpty) Set(text string) error {
	if text == "" {
		return errors.New("the value is empty: is a variable unset?")
	}
	*v.target = text

	return nil
}

// String returns the value.
func (v notEmpty) String() string { return *v.target }

// Options returns the options of an address.
func (f *AccessFlags) Options(listen string) access.Options {
	o := f.options
	o.Listen = listen

	return o
}
