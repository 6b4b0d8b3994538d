package provision

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/nats-io/jwt/v2"
)

// Signer has the account keys of a NATS operator that issues JWTs.
type Signer struct {
	// Keys are the public keys of the accounts by name.
	Keys map[string]string
	// Activate signs an activation with the key of the exporting account. It permits another account
	// one import.
	Activate func(account string, c *jwt.ActivationClaims) (string, error)
}

// Claims returns the claims of the accounts by name. Each export requires an activation. Otherwise
// every account of the NATS operator could import it.
func (a Accounts) Claims(s Signer) (map[string]*jwt.AccountClaims, error) {
	all := map[string]*jwt.AccountClaims{}
	for _, account := range a.All() {
		claims := jwt.NewAccountClaims(s.Keys[account.Name])
		claims.Name = account.Name
		if account.JetStream {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		}
		if account.DenyByDefault {
			nothing := jwt.Permission{Deny: jwt.StringList{">"}}
			claims.DefaultPermissions = jwt.Permissions{Pub: nothing, Sub: nothing}
		}
		if l := account.Limits; l != (AccountLimits{}) {
			claims.Limits.Conn, claims.Limits.Subs = int64(l.Connections), int64(l.Subscriptions)
			claims.Limits.LeafNodeConn = 0
		}
		for _, e := range account.Exports {
			claims.Exports.Add(e.claims())
		}
		for _, i := range account.Imports {
			imported, err := i.claims(s, i.from(a.Fleet), s.Keys[account.Name])
			if err != nil {
				return nil, fmt.Errorf("import %s of %s: %w", i.Subject, account.Name, err)
			}
			claims.Imports.Add(imported)
		}
		for _, m := range account.Mappings {
			claims.AddMapping(jwt.Subject(m.From), jwt.WeightedMapping{Subject: jwt.Subject(m.To)})
		}
		all[account.Name] = claims
	}

	return all, nil
}

func (e Export) claims() *jwt.Export {
	out := &jwt.Export{Name: kindOf(e.Service).String() + " " + e.Subject, Subject: jwt.Subject(e.Subject), Type: kindOf(e.Service), TokenReq: true}
	if e.Service {
		out.ResponseType, out.ResponseThreshold = jwt.ResponseTypeStream, answerThreshold
	}

	return out
}

func (i Import) claims(s Signer, from, to string) (*jwt.Import, error) {
	activation := jwt.NewActivationClaims(to)
	activation.ImportSubject, activation.ImportType = jwt.Subject(i.Subject), kindOf(i.Service)
	token, err := s.Activate(from, activation)
	if err != nil {
		return nil, err
	}
	local := i.Local
	if local == "" {
		local = i.Subject
	}

	return &jwt.Import{
		Name: i.Subject, Subject: jwt.Subject(i.Subject), LocalSubject: jwt.RenamingSubject(local),
		Account: s.Keys[from], Token: token, Type: kindOf(i.Service), Share: i.Share,
	}, nil
}

// ClaimsJSON returns the claims by account name as JSON. The owner of the keys fills in the public
// keys and activations.
func (a Accounts) ClaimsJSON() ([]byte, error) {
	keys, names := map[string]string{}, map[string]string{}
	for _, account := range a.All() {
		keys[account.Name] = "<public key of " + account.Name + ">"
		names[keys[account.Name]] = account.Name
	}
	claims, err := a.Claims(Signer{Keys: keys, Activate: func(account string, c *jwt.ActivationClaims) (string, error) {
		return fmt.Sprintf("<activation for %s of %s %s, signed by %s>", names[c.Subject], c.ImportType, c.ImportSubject, account), nil
	}})
	if err != nil {
		return nil, err
	}
	parts := map[string]jwt.Account{}
	for name, claim := range claims {
		parts[name] = claim.Account
	}

	return indentedJSON(parts)
}

// indentedJSON returns a value as indented JSON with readable wildcards.
func indentedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)

	return b.Bytes(), err
}

func kindOf(service bool) jwt.ExportType {
	if service {
		return jwt.Service
	}

	return jwt.Stream
}
