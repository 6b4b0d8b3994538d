package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// pauseCommand is muster fleet pause.
type pauseCommand struct {
	aim
	print.Format
	Signing
	confirmWait
	nodes         []string
	until, reason string
}

// addPause adds muster fleet pause.
func addPause(env *cli.Env, parent *fisk.CmdClause) {
	c := &pauseCommand{}
	cmd := parent.Command("pause", "Have nodes observe and change nothing for a while")
	cmd.HelpLong("A paused node runs no new assignment, repairs no drift and refuses requests. It still reports drift and finishes a run in progress. The pause ends at --until, or with muster fleet resume; the node then catches up. Waits for reachable nodes to confirm; unreachable nodes are listed and pause later. Exit code 0: every reachable node confirmed within --timeout.\n\n" +
		"  muster fleet pause web01 --until 2h --reason 'disk is replaced'\n  muster fleet pause --group web\n  muster fleet pause --on 'labels.rack == \"a3\"'")
	cli.NodesVar(cmd.Arg("node", "Nodes to pause").HintAction(env.CompleteNodes), &c.nodes)
	c.refusesUnknown, c.judgesUnknown = true, true
	c.add(env, cmd, true)
	cmd.Flag("until", "End the pause after a duration, such as 2h, or at a time (default: no end)").PlaceHolder("TIME").StringVar(&c.until)
	cmd.Flag("reason", "Why, for others").PlaceHolder("TEXT").StringVar(&c.reason)
	c.addWait(cmd)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// pause returns what is written.
func (c *pauseCommand) pause(now time.Time) (model.Pause, error) {
	p := model.Pause{Protocol: model.ProtocolPause, By: Operator(), Reason: c.reason, At: now.UTC().Truncate(time.Second)}
	if c.Given("until") {
		until, err := ParseTime(c.until, now, 1)
		if err != nil {
			return p, cli.Usagef("--until %w", err)
		}
		if !until.After(now) {
			return p, cli.Usagef("--until %s: is over", c.until)
		}
		p.Until = until.Truncate(time.Second)
	}
	if err := p.Check(); err != nil {
		return p, cli.Usagef("%w", err)
	}

	return p, nil
}

func (c *pauseCommand) run(ctx context.Context) error {
	var p model.Pause
	found, err := c.begin(ctx, c.nodes, &c.Signing, func() (err error) {
		if p, err = c.pause(time.Now()); err == nil {
			err = c.check()
		}
		return err
	})
	if err != nil {
		return err
	}
	by := Pauses{Bucket: kvstore.NewControl(found.store.KV).By(p.By), Signer: found.signer}
	done, failed := eachTarget(found.targets, func(t fleet.Target) (writtenChange, error) {
		w, err := by.Begin(ctx, t.String(), p)
		if w.Unsigned {
			c.Log.Warn("unsigned, unlike what it replaces: nodes that demand signatures reject it (give --sign-key FILE)", "key", w.Key)
		}
		return writtenChange{PauseResult: w, change: ask.PauseChange{Key: w.Key, Pause: &p, Revision: w.Revision}, target: t}, err
	})
	if found.expression == nil {
		c.warnUnknown(found, done)
	}
	if len(done) > 0 && p.Until.IsZero() {
		c.Print.Remark("the pause has no end: it lasts until muster fleet resume; --until sets an end")
	}
	waited := c.await(ctx, c.Env, found.store, found.known, done)
	shown := print.Text(model.Paused{Until: p.Until, By: p.By, Reason: p.Reason}.String())
	err = c.Print.Result(c.Format, done, func() {
		printPauses(c.Print, "pauses", done, func(w writeSummary) string { return w.line(shown) })
	})

	return errors.Join(failed, err, waited, found.undecided)
}

// warnUnknown warns of paused targets that no known node is in; if the fleet has nodes, it names the command that ends
// the pause.
func (c *pauseCommand) warnUnknown(found begun, done []writtenChange) {
	for _, w := range done {
		if len(Unknown([]fleet.Target{w.target}, found.known)) == 0 {
			continue
		}
		var undo []any
		if len(found.known) > 0 {
			words := cmp.Or(w.target.Node, "--group "+w.target.Group)
			undo = []any{"undo", found.store.KV.Names().Run("fleet resume " + words)}
		}
		WarnUnknownTarget(c.Log, w.target, found.known, undo...)
	}
}
