package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// forgetCommand implements muster fleet forget.
type forgetCommand struct {
	*cli.Env
	TargetFlags
	print.Format
	reports, force bool
}

// addForget adds muster fleet forget.
func addForget(env *cli.Env, parent *fisk.CmdClause) {
	c := &forgetCommand{}
	c.Env, c.remedy = env, "name nodes, or give --on EXPR"
	cmd := parent.Command("forget", "Remove the stored data of decommissioned nodes")
	cmd.HelpLong("Removes the state, facts and inventory of nodes, and the pause, labels and groups that operators set. --reports also removes their reports. Removes nothing if one of the nodes was seen recently. Assignments to the node stay, and the command lists them. Only administrators forget nodes.\n\n" +
		"  muster fleet forget web09\n  muster fleet forget --on 'state == \"unreachable\"' --yes\n  muster fleet forget web09 --reports")
	cli.NodesVar(cmd.Arg("node", "Nodes to forget").HintAction(env.CompleteNodes), &c.nodes)
	cli.NodesVar(cmd.Flag("node", "Target node; repeatable").PlaceHolder("NODE").HintAction(env.CompleteNodes), &c.nodes)
	c.AddOn(cmd)
	cmd.Flag("reports", "Also remove the reports of the nodes").UnNegatableBoolVar(&c.reports)
	cmd.Flag("force", "Also forget nodes that were seen recently; a running agent stores its state again").UnNegatableBoolVar(&c.force)
	c.addYes(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// forgotten is the result for one node.
type forgotten struct {
	Node string `json:"node"`
	// Removed lists the removed data: state, facts, control keys, reports.
	Removed []string `json:"removed"`
	// Assigned are the keys that remain assigned to this node.
	Assigned []string `json:"assigned"`

	// control are the stored documents that operators wrote.
	control []model.Entry
	// stored lists the other stored data, hasReports is set if reports are removed.
	stored     []string
	hasReports bool
}

func (c *forgetCommand) run(ctx context.Context) error {
	found, err := c.open(ctx, c.Env, nil, nil, NeedNodes, NeedManifests, NeedControl)
	if err != nil {
		return err
	}
	store := found.store
	if err := c.checkStored(ctx, store, found.selection); err != nil {
		return err
	}
	alive, err := c.checkGone(found.selection)
	if err != nil {
		return err
	}
	left, err := c.leftovers(ctx, store, found.selection)
	if err != nil {
		return err
	}
	if err := c.confirm(left); err != nil {
		return err
	}
	done, err := c.forget(ctx, store, left)
	err = errors.Join(c.Print.Result(c.Format, done, func() { c.print(store, done) }), err)
	if len(alive) > 0 {
		c.Log.Warn("node was seen recently; a running agent stores its state again", "nodes", strings.Join(alive, ","))
	}

	return errors.Join(err, found.undecided)
}

// checkGone returns an error if a node may still run. With --force it returns those nodes instead.
func (c *forgetCommand) checkGone(of selection) (alive []string, err error) {
	var failed []error
	for _, n := range of.known {
		if !slices.Contains(of.targets, fleet.Target{Node: n.Node}) {
			continue
		}
		switch fleet.Absent(n) {
		case "":
			alive = append(alive, n.Node)
			failed = append(failed, fmt.Errorf("%s was last seen %s ago: stop its agent first", n.Node, print.Age(n.Heard, time.Now())))
		case fleet.StatusUnreadable:
			alive = append(alive, n.Node)
			failed = append(failed, fmt.Errorf("%s may still run: its state, stored %s ago, cannot be read", n.Node, print.Age(n.Heard, time.Now())))
		}
	}
	if c.force || len(failed) == 0 {
		return alive, nil
	}

	return nil, fmt.Errorf("%w\nnot removed; --force removes it anyway", errors.Join(failed...))
}

// checkStored refuses to forget nodes while the server does not store states, because running nodes then look
// unreachable.
func (c *forgetCommand) checkStored(ctx context.Context, store *Store, of selection) error {
	if c.force {
		return nil
	}
	unstored := store.Unstored(ctx, of.known)
	if unstored.Since.IsZero() {
		return nil
	}

	return fmt.Errorf("running nodes may count as unreachable: %s\nnot removed; --force removes it anyway", unstored.States)
}

// leftovers reads the stored data of the nodes. A node without any data is an error.
func (c *forgetCommand) leftovers(ctx context.Context, store *Store, of selection) ([]*forgotten, error) {
	var out []*forgotten
	var failed []error
	states := of.states()
	for _, t := range of.targets {
		f := &forgotten{Node: t.Node, Assigned: []string{}}
		if _, known := states[t.Node]; known {
			f.stored = append(f.stored, "state")
		}
		if err := f.read(ctx, store, c.reports); err != nil {
			return nil, err
		}
		if len(f.stored)+len(f.control) == 0 && !f.hasReports {
			failed = append(failed, store.NoSuchNode(ctx, t.Node))
			continue
		}
		entries, err := store.List(ctx, t.String())
		if err != nil {
			return nil, err
		}
		f.Assigned = append(f.Assigned, keysOf(entries)...)
		out = append(out, f)
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%w\nnot removed", errors.Join(failed...))
	}

	return out, nil
}

// read reads the stored data except the state.
func (f *forgotten) read(ctx context.Context, store *Store, withReports bool) error {
	_, err := kvstore.NewNodes(store.KV).FactsDocument(ctx, f.Node)
	switch {
	case err == nil, errors.Is(err, kvstore.ErrInvalidFacts):
		f.stored = append(f.stored, "facts")
	case !errors.Is(err, model.ErrNotFound):
		return err
	}
	for _, name := range []string{model.ControlPause, model.ControlLabels, model.ControlGroups} {
		switch e, err := kvstore.NewControl(store.KV).Get(ctx, model.Key(model.NodeFamily(f.Node), name)); {
		case err == nil:
			f.control = append(f.control, e)
		case !errors.Is(err, model.ErrNotProvisioned) && !errors.Is(err, model.ErrNotFound): // an older fleet lacks the bucket
			return err
		}
	}
	if !withReports {
		return nil
	}
	newest, err := kvstore.NewReports(store.KV).Newest(ctx, f.Node)
	isInvalid := errors.Is(err, kvstore.ErrInvalidEvent)
	if f.hasReports = len(newest) > 0 || isInvalid; isInvalid {
		return nil
	}

	return err
}

func (c *forgetCommand) confirm(left []*forgotten) error {
	if len(left) < 2 || c.yes {
		return nil
	}
	names := make([]string, len(left))
	for i, f := range left {
		names[i] = f.Node
	}

	return c.Confirm("not removed", fmt.Sprintf("this forgets %s: %s", print.Count(len(left), "node"), print.Some(names, "see muster fleet nodes")))
}

// forget removes the data of the nodes. It stops at the first denied removal.
func (c *forgetCommand) forget(ctx context.Context, store *Store, left []*forgotten) ([]*forgotten, error) {
	done := []*forgotten{}
	var failed []error
	for _, f := range left {
		err := c.one(ctx, store, f)
		if len(f.Removed) > 0 {
			done = append(done, f)
		}
		if failed = append(failed, err); errors.Is(err, model.ErrNotPermitted) {
			break
		}
	}

	return done, errors.Join(failed...)
}

// one forgets one node. It removes the state first, so a user without permission for that removes nothing.
func (c *forgetCommand) one(ctx context.Context, store *Store, f *forgotten) error {
	if err := kvstore.NewNodes(store.KV).Remove(ctx, f.Node); err != nil {
		return err
	}
	f.Removed = f.stored
	bucket := kvstore.NewControl(store.KV).By(Operator())
	for _, e := range f.control {
		if _, err := bucket.Delete(ctx, e.Key, nil); err != nil && !errors.Is(err, model.ErrNotFound) {
			return err
		}
		if signed.IsEnvelope(e.Value) {
			c.Log.Warn("removed a signed value with an unsigned removal; a node that requires signatures keeps the value if it returns", "key", e.Key)
		}
		f.Removed = append(f.Removed, e.Key)
	}
	if !f.hasReports {
		return nil
	}
	if err := kvstore.NewReports(store.KV).Remove(ctx, f.Node); err != nil {
		return err
	}
	f.Removed = append(f.Removed, "reports")

	return nil
}

// print prints the removed data and the remaining assignments.
func (c *forgetCommand) print(store *Store, done []*forgotten) {
	for _, f := range done {
		c.Print.Printf("%s forgotten: %s\n", f.Node, strings.Join(f.Removed, ", "))
	}
	for _, f := range done {
		if len(f.Assigned) > 0 {
			c.Print.Remark("still assigned to %s; to remove: %s", f.Node, store.KV.Names.Run("fleet rm "+strings.Join(f.Assigned, " ")))
		}
	}
}
