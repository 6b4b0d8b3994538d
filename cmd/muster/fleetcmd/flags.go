package fleetcmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
)

// parseBefore sets the time of a flag such as --since: a time, or a duration before now. It leaves at unchanged
// for an empty text.
func parseBefore(flag, text string, at *time.Time) error {
	if text == "" {
		return nil
	}
	parsed, err := ParseTime(text, time.Now(), -1)
	if err != nil {
		return cli.Usagef("--%s %w", flag, err)
	}
	*at = parsed

	return nil
}

// ParseTime parses a time, or a duration from now: after it with sign 1, before it
// with -1. The words today and yesterday mean the start of that day, local time.
func ParseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := fisk.ParseDuration(text); err == nil {
		return now.Add(sign * d).UTC(), nil
	}
	local := now.Local()
	midnight := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.Local)
	switch text {
	case "today":
		return midnight.UTC(), nil
	case "yesterday":
		return midnight.AddDate(0, 0, -1).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at.UTC(), nil
		}
	}

	return time.Time{}, fmt.Errorf("%q: neither a duration such as 90m or 2d nor a time such as 2006-01-02T15:04:05Z", text)
}

// Order holds the flags that sort and limit a list.
type Order struct{ view.RowOrder }

// AddOrder adds the flags. Shells complete the column names.
func (o *Order) AddOrder(cmd *fisk.CmdClause, columns ...string) {
	cmd.Flag("sort", "Sort by this column").PlaceHolder("NAME").HintOptions(columns...).StringVar(&o.Sort)
	cmd.Flag("reverse", "Reverse the order").UnNegatableBoolVar(&o.Reverse)
	cmd.Flag("limit", "Show the first N rows; 0 shows all").Default("0").PlaceHolder("N").IntVar(&o.Limit)
}

// Check validates the flags. Without columns any sort column is accepted.
func (o *Order) Check(columns ...string) error {
	if o.Limit < 0 {
		return cli.Usagef("--limit %d must be 0 (all) or more", o.Limit)
	}
	if o.Sort == "" || len(columns) == 0 {
		return nil
	}
	if err := (view.QueryTable{Columns: columns}).CheckColumns([]string{o.Sort}); err != nil {
		return cli.Usagef("--sort: %w", err)
	}

	return nil
}

// Remark prints how many rows the limit hides.
func (o *Order) Remark(p print.Printer, shown, all int) {
	if shown < all {
		p.Remark("%d of %d shown (--limit)", shown, all)
	}
}

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
