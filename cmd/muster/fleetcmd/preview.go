package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
)

// previewCommand is muster fleet preview: a push that is not made.
type previewCommand struct {
	pushCommand
}

// addPreview adds muster fleet preview.
func addPreview(env *cli.Env, parent *fisk.CmdClause) {
	c := &previewCommand{pushCommand: pushCommand{Env: env}}
	cmd := parent.Command("preview", "Show what a push would change on the nodes, without it")
	cmd.HelpLong("Shows what the manifest would change on the nodes, and equal plans once. It assigns, changes and reports nothing, but the guards of commands (onlyif, unless) run, as in noop. It takes the arguments of muster fleet push, and --on. Exit code 0: every node answered, and no resource would fail.\n\n" +
		"  muster fleet preview --group web ./site/\n" +
		"  muster fleet preview --on 'labels.rack == \"a3\"' sshd.yaml\n" +
		"  muster fleet push --group web --preview ./site/           shows it, and asks")
	cmd.Arg("source", "File, directory, or - for standard input").Required().StringVar(&c.source)
	cmd.Flag("name", "Name of the assignment, which it would replace (default: the name of the file or directory)").PlaceHolder("NAME").StringVar(&c.name)
	cmd.Flag("bundle", "Send a bundle, also of a single manifest; for one that is too large").UnNegatableBoolVar(&c.bundle)
	cmd.Flag("timeout", "Time limit; guards are ended after it").Default("2m").DurationVar(&c.timeout)
	cli.OldFlag(cmd, "within").DurationVar(&c.timeout)
	c.AddTargets(env, cmd)
	c.AddOn(cmd)
	c.remedy = "give --node NODE, --group GROUP, --on EXPR or --all"
	c.addTerms(cmd)
	c.AddSignKey(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *previewCommand) run(ctx context.Context) error {
	on, list, err := c.Compile(c.Env)
	if err != nil {
		return err
	}
	if c.timeout < time.Second || c.timeout > model.MaxPreview {
		return cli.Usagef("--timeout must be at least 1s, and at most %s", model.MaxPreview)
	}
	push, err := c.prepare(ctx, list)
	if err != nil {
		return err
	}
	store, signer, err := OpenLive(ctx, c.Env, &c.Signing)
	if err != nil {
		return err
	}
	to, err := find(ctx, store, on, list)
	if err != nil {
		return err
	}
	push.Targets = to.targets
	switch {
	case on == nil:
		WarnUnknown(c.Log, to.targets, to.known)
	case !c.IsDocument():
		to.remark(c.Print)
	}
	found, err := RequestPreview(ctx, c.Env, store, PreviewRequest{Push: push, Known: to.known, Signer: signer, Within: c.timeout})
	if found == nil {
		return err
	}
	err = errors.Join(err, c.Print.Result(c.Format, found, func() { PrintPreview(c.Print, found) }))

	return errors.Join(err, PreviewError(found), to.undecided)
}

// confirmPreview shows what a push would change, and asks. With --yes it does not ask, and
// nothing is pushed where something would fail, or where known nodes were asked and none answered.
func (c *pushCommand) confirmPreview(ctx context.Context, store *Store, signer *assign.Signing, push assign.Push, nodes []model.Node) error {
	if !c.preview {
		return nil
	}
	found, err := RequestPreview(ctx, c.Env, store, PreviewRequest{Push: push, Known: nodes, Signer: signer, Within: min(c.timeout, model.MaxPreview)})
	if err != nil {
		return fmt.Errorf("nothing was pushed: %w", err)
	}
	PrintPreview(c.Print, found)
	why := fmt.Sprintf("the preview shows %s for %s", print.Count(len(found.Groups), "plan"), print.Count(found.Nodes(), "node"))
	if bad := PreviewError(found); bad != nil {
		why = bad.Error()
		if (found.WouldFail() > 0 || isUnanswered(found)) && (c.yes || !c.CanAsk()) {
			return fmt.Errorf("nothing was pushed: %s; to push all the same, leave out --preview", why)
		}
		if c.yes {
			c.Log.Warn("pushed without knowing what it changes everywhere", "preview", why)
		}
	}
	if c.yes {
		return nil
	}

	return c.Confirm("nothing was pushed", why)
}

// isUnanswered reports whether nodes were asked and nothing is known of any.
func isUnanswered(p *ask.PreviewResult) bool {
	return len(p.Groups) == 0 && len(p.Missing)+len(p.Unfinished) > 0
}
