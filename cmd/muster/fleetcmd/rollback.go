package fleetcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// rollbackCommand is muster fleet rollback.
type rollbackCommand struct {
	*cli.Env
	print.Format
	fleetcli.Signing
	name string
	to   uint64
	yes  bool
}

func addRollback(env *cli.Env, parent *fisk.CmdClause) {
	c := &rollbackCommand{Env: env}
	cmd := parent.Command("rollback", "Assign an earlier revision again")
	cmd.HelpLong("The new revision is the same as the earlier one, with its terms and its bundle. A removed assignment is assigned again.\n\n" +
		"  muster fleet rollback group.web.motd           what was assigned before\n" +
		"  muster fleet rollback group.web.motd --to 17   a revision of muster fleet show --history")
	cmd.Arg("name", "Key (see muster fleet ls), or unique name").Required().StringVar(&c.name)
	cmd.Flag("to", "Revision to assign again (default: the last that differs)").PlaceHolder("N").Uint64Var(&c.to)
	cmd.Flag("yes", "Do not ask for confirmation where noop would end what is enforced").Short('y').UnNegatableBoolVar(&c.yes)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *rollbackCommand) run(ctx context.Context) error {
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	store, key, all, err := openHistory(ctx, c.Env, c.name)
	if err != nil {
		return err
	}
	from, err := fleet.RollbackTo(all, c.to)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	// A bundle that is not stored any more is noticed here, and not by the nodes.
	if _, err := store.Content(ctx, from); err != nil {
		return fmt.Errorf("revision %d of %s: %w", from.Revision, key, err)
	}
	value, err := unsignedValue(from)
	if err != nil {
		return err
	}
	now := all[len(all)-1]
	if a, ok := model.DecodeAssignment(value); ok {
		if current, _, _ := signed.Assignment(now.Value); a.Noop && !now.Deleted && !current.Noop && !c.yes {
			if err := c.Confirm("nothing was changed", "nodes would stop enforcing "+key+", and only report what they would change"); err != nil {
				return err
			}
		}
		a.Issued = time.Now().UTC()
		if value, err = model.EncodeAssignment(a); err != nil {
			return err
		}
	}
	switch {
	case signer != nil:
		if value, err = signer.Assignment(ctx, key, value, now.Value); err != nil {
			return err
		}
	case signed.IsEnvelope(now.Value):
		warnUnsigned(c.Log)(key)
	}
	revision, err := store.Put(ctx, key, value)
	if err != nil {
		return err
	}

	return c.Print.Result(c.Format, map[string]any{"key": key, "revision": revision, "from": from.Revision}, func() {
		c.Print.Printf("%s revision %d, the same as revision %d\n", key, revision, from.Revision)
	})
}
