package fleetcmd

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet/assign"
)

// Signing holds the flags of commands that sign.
type Signing struct {
	files []string
	valid time.Duration
}

// AddSigning adds the flags.
func (s *Signing) AddSigning(cmd *fisk.CmdClause) {
	s.AddSignKey(cmd)
	cmd.Flag("sign-expires", "Validity of the signature; accepted assignments stay active after it").Default("365d").PlaceHolder("DURATION").DurationVar(&s.valid)
}

// AddSignKey adds --sign-key only, for requests, which have their own expiry.
func (s *Signing) AddSignKey(cmd *fisk.CmdClause) {
	cmd.Flag("sign-key", "Sign with the key in a file of muster trust key new; repeatable").Envar("MUSTER_SIGN_KEY").PlaceHolder("FILE").StringsVar(&s.files)
}

// Open reads the keys. It returns nil without keys.
func (s *Signing) Open(env *cli.Env) (*assign.Signing, error) {
	if len(s.files) == 0 {
		return nil, nil
	}
	if env.Given("sign-expires") && s.valid < time.Minute {
		return nil, cli.Usagef("--sign-expires must be at least 1m")
	}
	out := &assign.Signing{Fleet: env.Flags.Prefix, Valid: s.valid, Log: env.Log, Now: time.Now}
	for _, path := range s.files {
		key, err := assign.OpenKey(path)
		if err != nil {
			return nil, cli.FileError("--sign-key", path, err)
		}
		if slices.ContainsFunc(out.Keys, func(k *assign.KeyFile) bool { return k.Key() == key.Key() }) {
			return nil, cli.Usagef("--sign-key %s: this key is given twice", path)
		}
		out.Keys = append(out.Keys, key)
	}
	// Sort the keys, so that concurrent commands lock them in the same order.
	slices.SortFunc(out.Keys, func(a, b *assign.KeyFile) int { return strings.Compare(string(a.Key()), string(b.Key())) })

	return out, nil
}

// OpenSigning opens the signing keys, nil without keys, and connects to the fleet.
func OpenSigning(ctx context.Context, env *cli.Env, key *Signing, needs ...Need) (*Store, *assign.Signing, error) {
	signer, err := key.Open(env)
	if err != nil {
		return nil, nil, err
	}
	store, err := Open(ctx, env, needs...)

	return store, signer, err
}
