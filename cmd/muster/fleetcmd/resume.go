package fleetcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// resumeCommand implements muster fleet resume.
type resumeCommand struct {
	aim
	print.Format
	Signing
	confirmWait
	nodes []string
}

// addResume adds muster fleet resume.
func addResume(env *cli.Env, parent *fisk.CmdClause) {
	c := &resumeCommand{}
	cmd := parent.Command("resume", "End a pause of nodes")
	cmd.HelpLong("Nodes run the assignments of the pause, and repair drift. A node stays paused while one of its groups is paused. The command waits for the nodes to confirm; unreachable nodes are listed and resume after they reconnect. Exit code 0: every reachable node confirmed within --timeout.\n\n" +
		"  muster fleet resume web01\n  muster fleet resume --group web\n  muster fleet resume --on 'state == \"paused\"'")
	cli.NodesVar(cmd.Arg("node", "Nodes to resume").HintAction(env.CompleteNodes), &c.nodes)
	c.add(env, cmd, true)
	c.judgesUnknown = true
	c.addWait(cmd)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

func (c *resumeCommand) run(ctx context.Context) error {
	found, err := c.begin(ctx, c.nodes, &c.Signing, c.check)
	if err != nil {
		return err
	}
	by := Pauses{Bucket: kvstore.NewControl(found.store.KV).By(Operator()), Signer: found.signer}
	var done []writtenChange
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
			done = append(done, writtenChange{PauseResult: w, change: ask.PauseChange{Key: w.Key}, target: t})
		}
	}
	switch matched := print.Count(len(found.targets), "node"); {
	case len(done)+len(failed) > 0:
	case idle < len(found.targets):
		failed = append(failed, fmt.Errorf("none of %s that match has its own pause", matched))
	case idle > 1 && found.expression != nil:
		c.Print.Remark("none of %s that match is paused", matched)
	}
	waited := c.await(ctx, c.Env, found.store, found.known, done)
	err = c.Print.Result(c.Format, done, func() {
		printPauses(c.Print, "pauses removed", done, func(w writeSummary) string { return fmt.Sprintf("%s removed, revision %d\n", w.Key, w.Revision) })
	})

	return errors.Join(append(failed, err, waited, found.undecided)...)
}

// errNotPaused: a known target is not paused.
var errNotPaused = errors.New("not paused")

// pausedBy is the error for a target that another key pauses. It wraps model.ErrNotFound.
type pausedBy struct {
	target fleet.Target
	from   string
}

// Error names the target and the other key.
func (p pausedBy) Error() string {
	return fmt.Sprintf("%s is paused by %s, not by its own pause", p.target, print.Text(p.from))
}

// Unwrap returns model.ErrNotFound.
func (pausedBy) Unwrap() error { return model.ErrNotFound }

// end removes the pause of a target. If there is none, it returns errNotPaused for a known target that is not
// paused, a pausedBy for one that another key pauses, and an error for an unknown target. known holds the
// states of the nodes.
func (c *resumeCommand) end(ctx context.Context, store *Store, by Pauses, t fleet.Target, known []model.Node) (PauseResult, error) {
	from, isKnown := "", false
	for _, n := range known {
		isKnown = isKnown || t.Includes(n.NodeState)
		// After a restore from backup the bucket may lack a pause that nodes still have.
		if n.Paused != nil && (n.Node == t.Node || n.Paused.From == model.Key(t.String(), model.ControlPause)) {
			from = n.Paused.From
		}
	}
	w, err := by.End(ctx, t.String(), from)
	switch isMissing := errors.Is(err, model.ErrNotFound); {
	case isMissing && !isKnown:
		if err := NoSuchTargets([]fleet.Target{t}, known); err != nil {
			return w, err
		}
		return w, errNotPaused // --all in a fleet without nodes
	case isMissing && from != "":
		return w, pausedBy{t, from}
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
