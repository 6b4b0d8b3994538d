package fleetcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
)

// rollbackCommand implements muster fleet rollback.
type rollbackCommand struct {
	*cli.Env
	print.Format
	Signing
	TargetFlags
	name string
	to   uint64
}

// addRollback adds muster fleet rollback.
func addRollback(env *cli.Env, parent *fisk.CmdClause) {
	c := &rollbackCommand{Env: env}
	cmd := parent.Command("rollback", "Assign an earlier revision again")
	cmd.HelpLong("The new revision is the same as the earlier one, with its terms and its bundle. A removed assignment is assigned again.\n\n" +
		"  muster fleet rollback group.web.motd           to the revision before\n" +
		"  muster fleet rollback group.web.motd --to 17   a revision of muster fleet show --history")
	cmd.Arg("name", "Key (see muster fleet ls), or name").Required().HintAction(env.CompleteAssignments).StringVar(&c.name)
	c.AddOwner(env, cmd)
	cmd.Flag("to", "Revision to assign again (default: the last that differs)").PlaceHolder("N").Uint64Var(&c.to)
	c.addYes(cmd)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *rollbackCommand) run(ctx context.Context) error {
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	store, key, all, err := c.openHistory(ctx, c.Env, c.name)
	if err != nil {
		return err
	}
	var preferred func(model.Entry) bool
	if signer != nil {
		preferred = func(e model.Entry) bool { return signer.Signed(ctx, e, 1) }
	}
	from, err := assign.RollbackTo(all, c.to, preferred)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	now := all[len(all)-1]
	if id := assign.Identity(key, now.Value); signer == nil && !now.Deleted && id != "" && id == assign.Identity(key, from.Value) {
		return c.Print.Result(c.Format, map[string]any{"key": key, "revision": now.Revision, "from": from.Revision, "unchanged": true}, func() {
			c.Print.Printf("%s revision %d unchanged, the same as revision %d\n", key, now.Revision, from.Revision)
		})
	}
	value, err := c.content(ctx, store, from, now)
	if err != nil {
		return err
	}
	switch {
	case signer != nil:
		if err := c.confirmSigned(ctx, store, signer, value, from, now); err != nil {
			return err
		}
		if value, err = signer.Sign(ctx, signed.Assign, key, value, now.Value); err != nil {
			return err
		}
	case signed.IsEnvelope(now.Value):
		warnUnsigned(c.Log)(key)
	}
	revision, err := store.Replace(ctx, now, value, false)
	if err != nil {
		return err
	}

	return c.Print.Result(c.Format, map[string]any{"key": key, "revision": revision, "from": from.Revision}, func() {
		c.Print.Printf("%s revision %d, the same as revision %d\n", key, revision, from.Revision)
	})
}

// content returns the content of an earlier revision with a new issue time. It asks before nodes stop
// enforcing the manifest.
func (c *rollbackCommand) content(ctx context.Context, store *Store, from, now model.Entry) ([]byte, error) {
	_, value, err := signed.Revision(from)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from.Key, err)
	}
	// Report a missing bundle here rather than on the nodes.
	if _, err := store.Content(ctx, from); err != nil {
		return nil, fmt.Errorf("revision %d of %s: %w", from.Revision, from.Key, err)
	}
	a, problems := document.DecodeAssignedContent(from.Key, value)
	switch {
	case problems != nil:
		return nil, fmt.Errorf("revision %d of %s: %s", from.Revision, from.Key, assign.Invalid(problems))
	case a.Bare:
		return value, nil
	}
	if current, _ := document.DecodeAssigned(now.Key, now.Value); a.Noop && !now.Deleted && !current.Noop && !c.yes {
		if err := c.Confirm("no changes made", "nodes would stop enforcing "+from.Key+", and only report the changes"); err != nil {
			return nil, err
		}
	}
	a.Issued = time.Now().UTC()

	return model.EncodeAssignment(a.Assignment)
}

// confirmSigned prints the changes to sign, and asks. If no key of the signer has signed the revision before,
// it prints all content, because anyone may have written it.
func (c *rollbackCommand) confirmSigned(ctx context.Context, store *Store, signer *assign.Signing, value []byte, from, now model.Entry) error {
	known := signer.Signed(ctx, from, 1)
	if !known {
		c.Log.Warn(fmt.Sprintf("revision %d has no valid signature from the given keys", from.Revision), "key", from.Key)
	}
	if c.yes {
		return nil
	}
	shown, err := NewSigningPreview(ctx, store, signed.Statement{Action: signed.Assign, Target: from.Key, Content: string(value)}, from)
	if err != nil {
		return err
	}
	if !known {
		shown.ShowContent(c.Print)
		shown.ShowFiles(c.Print)
	}
	c.Print.Remark("# changes since the current revision %d:", now.Revision)
	if err := shown.ShowDiff(ctx, c.Print, store, now); err != nil {
		return err
	}

	return c.Confirm("not signed", fmt.Sprintf("this assigns revision %d of %s again, %s", from.Revision, from.Key, model.DigestOf(value)))
}
