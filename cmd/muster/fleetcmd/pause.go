package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// pauseCommand implements muster fleet pause.
type pauseCommand struct {
	controlCommand
	until, reason string
}

// addPause adds muster fleet pause.
func addPause(env *cli.Env, parent *fisk.CmdClause) {
	c := &pauseCommand{}
	cmd := parent.Command("pause", "Have nodes observe and change nothing for a while")
	cmd.HelpLong("A paused node runs no new assignment, repairs no drift and refuses requests. It still reports drift and finishes a run in progress. The pause ends at --until, or with muster fleet resume; the node then catches up. Waits for reachable nodes to confirm; unreachable nodes are listed and pause later. Exit code 0: every reachable node confirmed within --timeout.\n\n" +
		"  muster fleet pause web01 --until 2h --reason 'disk is replaced'\n  muster fleet pause --group web\n  muster fleet pause --on 'labels.rack == \"a3\"'")
	cli.NodesVar(cmd.Arg("node", "Nodes to pause").HintAction(env.CompleteNodes), &c.nodes)
	c.refusesUnknown = true
	c.add(env, cmd, true)
	cmd.Flag("until", "End the pause after a duration, such as 2h, or at a time (default: no end)").PlaceHolder("TIME").StringVar(&c.until)
	cmd.Flag("reason", "Why, for others").PlaceHolder("TEXT").StringVar(&c.reason)
	c.addWait(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// pause returns the document.
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
	p, err := c.pause(time.Now())
	if err != nil {
		return err
	}
	found, err := c.begin(ctx)
	if err != nil {
		return err
	}
	by := ask.Pauses{Bucket: kvstore.NewControl(found.store.KV).By(p.By), Signer: found.signer}
	shown := print.Text(model.Paused{Until: p.Until, By: p.By, Reason: p.Reason}.String())
	done, failed := eachTarget(found.targets, func(t fleet.Target) (*written, error) {
		w, err := by.Write(ctx, t.String(), &p, "")
		if w.Unsigned {
			c.Log.Warn("replacing a signed value with an unsigned one; nodes that require signatures reject it (give --sign-key FILE)", "key", w.Key)
		}
		out := newWritten(w.Key, w.Revision, t, shown)
		out.change = ask.PauseChange{ControlKey: w.Key, Pause: &p, Revision: w.Revision}
		return out, err
	})
	for _, w := range done {
		if found.expression == nil {
			warnUnknownTarget(c.Log, w.target, found.known, found.store.KV.Names.Run("fleet resume "+cmp.Or(w.target.Node, "--group "+w.target.Group)))
		}
	}
	if len(done) > 0 && p.Until.IsZero() {
		c.Print.Remark("the pause has no end: it lasts until muster fleet resume; --until sets an end")
	}

	return c.conclude(ctx, found, "pauses", done, done, failed)
}

// resumeCommand implements muster fleet resume.
type resumeCommand struct {
	controlCommand
}

// addResume adds muster fleet resume.
func addResume(env *cli.Env, parent *fisk.CmdClause) {
	c := &resumeCommand{}
	cmd := parent.Command("resume", "End a pause of nodes")
	cmd.HelpLong("Nodes run the assignments of the pause, and repair drift. A node stays paused while one of its groups is paused. The command waits for the nodes to confirm; unreachable nodes are listed and resume after they reconnect. Exit code 0: every reachable node confirmed within --timeout.\n\n" +
		"  muster fleet resume web01\n  muster fleet resume --group web\n  muster fleet resume --on 'state == \"paused\"'")
	cli.NodesVar(cmd.Arg("node", "Nodes to resume").HintAction(env.CompleteNodes), &c.nodes)
	c.add(env, cmd, true)
	c.addWait(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *resumeCommand) run(ctx context.Context) error {
	found, err := c.begin(ctx)
	if err != nil {
		return err
	}
	by := ask.Pauses{Bucket: kvstore.NewControl(found.store.KV).By(Operator()), Signer: found.signer}
	var done []*written
	idle := 0
	var failed []error
	for _, t := range found.targets {
		w, err := c.end(ctx, found.store, by, t, found.known)
		switch isOne := found.expression == nil || len(found.targets) == 1; {
		case errors.Is(err, errNotPaused):
			if idle++; isOne {
				c.Print.Remark("%s is not paused", t)
			}
		case errors.Is(err, model.ErrNotFound) && !isOne:
			// A matching node may be paused through a group only.
		case err != nil:
			failed = append(failed, err)
		default:
			done = append(done, &written{Key: w.Key, Revision: w.Revision, change: ask.PauseChange{ControlKey: w.Key}, target: t, line: fmt.Sprintf("%s removed, revision %d", w.Key, w.Revision)})
		}
	}
	switch matched := print.Count(len(found.targets), "node"); {
	case len(done)+len(failed) > 0:
	case idle < len(found.targets):
		failed = append(failed, fmt.Errorf("none of %s that match has its own pause", matched))
	case idle > 1 && found.expression != nil:
		c.Print.Remark("none of %s that match is paused", matched)
	}

	return c.conclude(ctx, found, "pauses removed", done, done, errors.Join(failed...))
}

// errNotPaused: a known target is not paused.
var errNotPaused = errors.New("not paused")

// end removes the pause of a target. If there is none, it returns errNotPaused for a known target that is not
// paused, and an error that wraps model.ErrNotFound for one that another key pauses and for an unknown target. known holds
// the states of the nodes.
func (c *resumeCommand) end(ctx context.Context, store *Store, by ask.Pauses, t fleet.Target, known []model.Node) (ask.PauseResult, error) {
	from, isKnown := "", false
	for _, n := range known {
		isKnown = isKnown || t.Includes(n.NodeState)
		// After a restore from backup the bucket may lack a pause that nodes still have.
		if n.Paused != nil && (n.Node == t.Node || n.Paused.From == model.Key(t.String(), model.ControlPause)) {
			from = n.Paused.From
		}
	}
	w, err := by.Write(ctx, t.String(), nil, from)
	switch isMissing := errors.Is(err, model.ErrNotFound); {
	case isMissing && !isKnown:
		if err := NoSuchTargets([]fleet.Target{t}, known); err != nil {
			return w, err
		}
		return w, errNotPaused // --all in a fleet without nodes
	case isMissing && from != "":
		return w, assign.NotFound(fmt.Sprintf("%s is paused by %s, not by its own pause", t, print.Text(from)))
	case isMissing:
		return w, errNotPaused
	case err == nil && !isKnown:
		WarnUnknown(c.Log, []fleet.Target{t}, known)
	}
	if w.Unsigned {
		c.Log.Warn("removing a signed pause without a signature; nodes that require signatures stay paused (give --sign-key FILE)", "key", w.Key)
	}
	if err == nil && from != "" && from != w.Key {
		c.Log.Warn("the node stays paused", "node", t.Node, "by", print.Text(from))
	}

	return w, err
}
