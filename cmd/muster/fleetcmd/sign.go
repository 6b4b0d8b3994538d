package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// signCommand is muster fleet sign.
type signCommand struct {
	*cli.Env
	print.Format
	fleetcli.Signing
	names  []string
	digest string
	renew  bool
	yes    bool
}

// signedResult is the result for one key.
type signedResult struct {
	Key       string     `json:"key"`
	Revision  uint64     `json:"revision"`
	Digest    string     `json:"digest,omitempty"`
	Signature *signature `json:"signature"`
}

func addSign(env *cli.Env, parent *fisk.CmdClause) {
	c := &signCommand{Env: env}
	cmd := parent.Command("sign", "Sign what is assigned, or its removal")
	cmd.HelpLong("Adds a signature to those that are there, for nodes that demand several; what is not signed yet is signed as it is. Shows what is signed, and asks.\n\n" +
		"  muster fleet sign group.web.motd --sign-key bob.nk\n" +
		"  muster fleet sign group.web.motd --sign-key bob.nk --digest sha256-…   what was shown, and nothing else\n" +
		"  muster fleet sign group.web.motd --sign-key bob.nk --renew    with a new expiry, without the signatures of others")
	cmd.Arg("name", "Keys (see muster fleet ls), or unique names").Required().StringsVar(&c.names)
	cmd.Flag("digest", "Sign the content with this digest, terms included, and do not ask").PlaceHolder("DIGEST").StringVar(&c.digest)
	cmd.Flag("yes", "Do not ask for confirmation").Short('y').UnNegatableBoolVar(&c.yes)
	cmd.Flag("renew", "Sign it as new, without the signatures that are there").UnNegatableBoolVar(&c.renew)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *signCommand) run(ctx context.Context) error {
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	if signer == nil {
		return cli.Usagef("no key to sign with: give --sign-key FILE or MUSTER_SIGN_KEY (muster trust key new makes one)")
	}
	store, err := fleetcli.Open(ctx, c.Env)
	if err != nil {
		return err
	}
	var done []signedResult
	var failed []error
	for _, name := range c.names {
		result, err := c.sign(ctx, store, signer, name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, result)
	}
	err = c.Print.Result(c.Format, done, func() {
		for _, r := range done {
			c.Print.Printf("%s revision %d %s%s\n", r.Key, r.Revision, cmp.Or(r.Digest, "removed"), r.Signature)
		}
	})

	return errors.Join(append(failed, err)...)
}

// sign signs the newest revision of a key, and stores it as the next one.
func (c *signCommand) sign(ctx context.Context, store *fleetcli.Store, signer *signing.Signing, name string) (signedResult, error) {
	if err := fleetcli.CheckNameOrKey(name); err != nil {
		return signedResult{}, err
	}
	key, all, err := store.HistoryOf(ctx, name)
	if err != nil {
		return signedResult{}, err
	}
	e := all[len(all)-1]
	if err := c.confirm(e); err != nil {
		return signedResult{}, err
	}
	value, err := c.value(ctx, signer, e)
	if err != nil {
		return signedResult{}, fmt.Errorf("%s: %w", key, err)
	}
	out := signedResult{Key: key, Digest: e.Digest, Signature: signatureOf(ctx, value)}
	if e.Deleted {
		out.Revision, err = store.DeleteSigned(ctx, key, value)
	} else {
		out.Revision, err = store.Put(ctx, key, value)
	}

	return out, err
}

// confirm shows what is signed, and asks. A digest is that of all of it: that of a
// manifest leaves out the terms.
func (c *signCommand) confirm(e model.Entry) error {
	content, err := signed.Content(e.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Key, err)
	}
	digest := model.DigestOf(content)
	switch {
	case c.digest == digest || c.digest == "" && c.yes:
		return nil
	case c.digest != "":
		return fmt.Errorf("%s revision %d has the digest %s, terms included: it is not what you saw", e.Key, e.Revision, digest)
	case e.Deleted:
		return c.Confirm("nothing was signed", fmt.Sprintf("revision %d removes %s", e.Revision, e.Key))
	}
	for line := range strings.Lines(fleet.Readable(e.Value)) {
		c.Print.Remark("%s", print.Text(strings.TrimRight(line, "\n")))
	}

	return c.Confirm("nothing was signed", fmt.Sprintf("this is %s revision %d, %s", e.Key, e.Revision, digest))
}

// value returns the signed value of a revision.
func (c *signCommand) value(ctx context.Context, signer *signing.Signing, e model.Entry) ([]byte, error) {
	switch content, err := signed.Content(e.Value); {
	case signed.IsEnvelope(e.Value) && !c.renew:
		return signer.Add(ctx, e.Key, e.Value)
	case e.Deleted:
		return signer.Removal(ctx, e.Key, e.Value)
	case err != nil:
		return nil, err
	default:
		return signer.Assignment(ctx, e.Key, content, e.Value)
	}
}

// unsignedValue returns what an earlier revision assigned, to be assigned again.
func unsignedValue(e model.Entry) ([]byte, error) {
	content, err := signed.Content(e.Value)
	if err != nil {
		err = fmt.Errorf("revision %d: %w", e.Revision, err)
	}

	return content, err
}

// pusherSigner returns what signs a push, nil for nothing.
func pusherSigner(s *signing.Signing) fleet.Signer {
	if s == nil {
		return nil
	}

	return s
}
