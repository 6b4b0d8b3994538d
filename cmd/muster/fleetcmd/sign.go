package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
)

// signCommand implements muster fleet sign.
type signCommand struct {
	*cli.Env
	print.Format
	Signing
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
	Signature *Signature `json:"signature"`
	// Unchanged is set if the keys had already signed the revision.
	Unchanged bool `json:"unchanged,omitempty"`
}

// addSign adds muster fleet sign.
func addSign(env *cli.Env, parent *fisk.CmdClause) {
	c := &signCommand{Env: env}
	cmd := parent.Command("sign", "Sign an assignment, or its removal")
	cmd.HelpLong("Adds a signature to the newest revision of an assignment, or of its removal, for nodes that require several. Also signs an unsigned revision. Shows the content, and asks for confirmation before it signs.\n\n" +
		"  muster fleet sign group.web.motd --sign-key bob.nk\n" +
		"  muster fleet sign group.web.motd --sign-key bob.nk --digest sha256-…   only the content with this digest\n" +
		"  muster fleet sign group.web.motd --sign-key bob.nk --renew    with a new expiry; drops other signatures")
	cmd.Arg("name", "Keys (see muster fleet ls), or unique names").Required().HintAction(env.CompleteAssignments).StringsVar(&c.names)
	cmd.Flag("digest", "Sign only the content with this digest, terms included, without confirmation").PlaceHolder("DIGEST").StringVar(&c.digest)
	cmd.Flag("yes", "Skip confirmation").Short('y').UnNegatableBoolVar(&c.yes)
	cmd.Flag("renew", "Replace the existing signatures").UnNegatableBoolVar(&c.renew)
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
		return cli.Usagef("no key to sign with: give --sign-key FILE or MUSTER_SIGN_KEY (muster trust key new creates one)")
	}
	store, err := Open(ctx, c.Env, NeedManifests)
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
			note := ""
			if r.Unchanged {
				note = " (unchanged: nothing to add)"
			}
			c.Print.Printf("%s revision %d %s%s%s\n", r.Key, r.Revision, cmp.Or(r.Digest, "removed"), r.Signature, note)
		}
	})

	return errors.Join(append(failed, err)...)
}

// sign signs the newest revision of a key, and stores the result as the next revision.
func (c *signCommand) sign(ctx context.Context, store *Store, signer *assign.Signing, name string) (signedResult, error) {
	if err := CheckNameOrKey(name); err != nil {
		return signedResult{}, err
	}
	key, all, err := store.HistoryOf(ctx, name)
	if err != nil {
		return signedResult{}, err
	}
	now := all[len(all)-1]
	proposal, err := signer.Propose(ctx, now, c.renew)
	if err != nil {
		return signedResult{}, fmt.Errorf("%s: %w", key, err)
	}
	if signer.IsSigned(proposal) && (c.digest == "" || c.digest == model.DigestOf([]byte(proposal.Statement.Content))) {
		out := resultOf(ctx, proposal, now.Revision, now.Value)
		out.Unchanged = true

		return out, nil
	}
	if err := c.confirm(ctx, store, signer, all, proposal); err != nil {
		return signedResult{}, err
	}
	value, err := signer.Sign(ctx, proposal)
	if err != nil {
		return signedResult{}, fmt.Errorf("%s: %w", key, err)
	}
	// Replace fails if the revision was replaced since it was read.
	revision, err := store.Replace(ctx, now, value, now.Deleted)

	return resultOf(ctx, proposal, revision, value), err
}

// resultOf returns the result for a revision with a signed value.
func resultOf(ctx context.Context, p assign.Proposal, revision uint64, value []byte) signedResult {
	out := signedResult{Key: p.Statement.Target, Revision: revision}
	removal := p.Statement.Action == signed.Remove
	if !removal {
		out.Digest = document.AssignedDigest(out.Key, value)
	}
	out.Signature = SignatureOf(ctx, p.Statement.Fleet, model.Entry{Key: out.Key, Deleted: removal, Value: value})

	return out
}

// confirm prints the content to sign, and asks. With --digest it compares digests instead. That digest covers
// the terms; the digest of a manifest does not.
func (c *signCommand) confirm(ctx context.Context, store *Store, signer *assign.Signing, all []model.Entry, p assign.Proposal) error {
	now := all[len(all)-1]
	digest := model.DigestOf([]byte(p.Statement.Content))
	removal := p.Statement.Action == signed.Remove
	switch {
	case c.digest != "" && removal:
		return fmt.Errorf("revision %d removes %s; it has no content with the given digest", now.Revision, now.Key)
	case c.digest != "" && c.digest != digest:
		return fmt.Errorf("%s revision %d has digest %s, terms included, not the given digest", now.Key, now.Revision, digest)
	case c.digest != "":
		return nil
	}
	shown, err := NewSigningPreview(ctx, store, p.Statement, now)
	if err != nil {
		return fmt.Errorf("%s: %w (nothing was signed; --digest %s signs it without showing it)", now.Key, err, digest)
	}
	if c.yes {
		return nil
	}
	shown.ShowContent(c.Print)
	if earlier := slices.DeleteFunc(slices.Clone(all[:len(all)-1]), func(e model.Entry) bool { return !signer.Signed(ctx, e, 1) }); len(earlier) > 0 {
		c.Print.Remark("# changes since revision %d, which you signed:", earlier[len(earlier)-1].Revision)
		if err := shown.ShowDiff(ctx, c.Print, store, earlier[len(earlier)-1]); err != nil {
			return err
		}
	} else {
		shown.ShowFiles(c.Print)
	}
	c.Print.Remark("# %s", SignatureLine(p))
	if removal {
		return c.Confirm("nothing was signed", fmt.Sprintf("revision %d removes %s", now.Revision, now.Key))
	}

	return c.Confirm("nothing was signed", fmt.Sprintf("this is %s revision %d, %s", now.Key, now.Revision, digest))
}

// pusherSigner returns the signer of a push, or nil.
func pusherSigner(s *assign.Signing) assign.Signer {
	if s == nil {
		return nil
	}

	return s
}
