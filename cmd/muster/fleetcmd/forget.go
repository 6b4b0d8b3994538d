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
	aim
	print.Format
	nodes          []string
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
	cli.NodesVar(cmd.Flag("node", "Target node; repeatable").PlaceHolder("NODE").HintAction(env.CompleteNodes), &c.TargetFlags.nodes)
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
}

// leftover describes the stored data of a node.
type leftover struct {
	node    string
	removed []string
	// control lists the keys that operators wrote.
	control  []string
	reports  bool
	assigned []string
}

func (c *forgetCommand) run(ctx context.Context) error {
	c.AddNames(c.nodes)
	on, list, err := c.Compile(c.Env)
	if err != nil {
		return err
	}
	store, err := Open(ctx, c.Env, NeedNodes, NeedManifests, NeedControl)
	if err != nil {
		return err
	}
	found, err := find(ctx, store, on, list)
	if err != nil {
		return err
	}
	if err := c.checkStored(ctx, store, found); err != nil {
		return err
	}
	alive, err := c.checkGone(found)
	if err != nil {
		return err
	}
	left, err := c.leftovers(ctx, store, found)
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

	return nil, fmt.Errorf("%w\nnothing was removed; --force removes it anyway", errors.Join(failed...))
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

	return fmt.Errorf("running nodes may count as unreachable: %s\nnothing was removed; --force removes it anyway", unstored.States)
}

// leftovers reads the stored data of the nodes. A node without any data is an error.
func (c *forgetCommand) leftovers(ctx context.Context, store *Store, of selection) ([]leftover, error) {
	var out []leftover
	var failed []error
	states := of.states()
	for _, t := range of.targets {
		l := leftover{node: t.Node, assigned: []string{}}
		if _, known := states[t.Node]; known {
			l.removed = append(l.removed, "state")
		}
		if err := l.read(ctx, store, c.reports); err != nil {
			return nil, err
		}
		if len(l.removed)+len(l.control) == 0 && !l.reports {
			failed = append(failed, store.NoSuchNode(ctx, t.Node))
			continue
		}
		entries, err := store.List(ctx, t.String())
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			l.assigned = append(l.assigned, e.Key)
		}
		out = append(out, l)
	}
	if len(failed) > 0 {
		return nil, fmt.Errorf("%w\nnothing was removed", errors.Join(failed...))
	}

	return out, nil
}

// read reads the stored data except the state.
func (l *leftover) read(ctx context.Context, store *Store, withReports bool) error {
	_, err := kvstore.NewNodes(store.KV).FactsDocument(ctx, l.node)
	switch {
	case err == nil, errors.Is(err, kvstore.ErrInvalidFacts):
		l.removed = append(l.removed, "facts")
	case !errors.Is(err, model.ErrNotFound):
		return err
	}
	bucket := kvstore.NewControl(store.KV).By(Operator())
	for _, name := range []string{model.ControlPause, model.ControlLabels, model.ControlGroups} {
		key := model.Key(model.NodeFamily(l.node), name)
		switch _, err := bucket.Get(ctx, key); {
		case err == nil:
			l.control = append(l.control, key)
		case errors.Is(err, kvstore.ErrNotProvisioned): // an older fleet without this bucket
		case !errors.Is(err, model.ErrNotFound):
			return err
		}
	}
	if !withReports {
		return nil
	}
	newest, err := kvstore.NewReports(store.KV).Newest(ctx, l.node)
	l.reports = len(newest) > 0 || errors.Is(err, kvstore.ErrInvalidEvent)
	if errors.Is(err, kvstore.ErrInvalidEvent) {
		err = nil
	}

	return err
}

func (c *forgetCommand) confirm(left []leftover) error {
	if len(left) < 2 || c.yes {
		return nil
	}
	names := make([]string, len(left))
	for i, l := range left {
		names[i] = l.node
	}

	return c.Confirm("nothing was removed", fmt.Sprintf("this forgets %s: %s", print.Count(len(left), "node"), print.Some(names, "see muster fleet nodes")))
}

// forget removes the data of the nodes. It stops at the first denied removal.
func (c *forgetCommand) forget(ctx context.Context, store *Store, left []leftover) ([]forgotten, error) {
	done := []forgotten{}
	var failed []error
	for _, l := range left {
		f, err := c.one(ctx, store, l)
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
func (c *forgetCommand) one(ctx context.Context, store *Store, l leftover) (forgotten, error) {
	out := forgotten{Node: l.node, Assigned: l.assigned}
	if err := kvstore.NewNodes(store.KV).Remove(ctx, l.node); err != nil {
		return out, err
	}
	out.Removed = append(out.Removed, l.removed...)
	bucket := kvstore.NewControl(store.KV).By(Operator())
	for _, key := range l.control {
		current, err := bucket.Get(ctx, key)
		if err == nil {
			_, err = bucket.Delete(ctx, key, nil)
		}
		if err != nil && !errors.Is(err, model.ErrNotFound) {
			return out, err
		}
		if signed.IsEnvelope(current.Value) {
			c.Log.Warn("removed a signed value with an unsigned removal; a node that requires signatures keeps the value if it returns", "key", key)
		}
		out.Removed = append(out.Removed, key)
	}
	if !l.reports {
		return out, nil
	}
	if err := kvstore.NewReports(store.KV).Remove(ctx, l.node); err != nil {
		return out, err
	}
	out.Removed = append(out.Removed, "reports")

	return out, nil
}

// print prints the removed data and the remaining assignments.
func (c *forgetCommand) print(store *Store, done []forgotten) {
	for _, f := range done {
		c.Print.Printf("%s forgotten: %s\n", f.Node, strings.Join(f.Removed, ", "))
	}
	for _, f := range done {
		if len(f.Assigned) > 0 {
			c.Print.Remark("still assigned to %s; to remove: %s", f.Node, store.KV.Names().Run("fleet rm "+strings.Join(f.Assigned, " ")))
		}
	}
}
