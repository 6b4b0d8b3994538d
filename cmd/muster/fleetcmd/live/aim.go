package ensurecmd

import (
	"context"
	"fmt"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/target"
	"github.com/musterfleet/muster/model"
)

// maxUnasked is how many nodes a fleet can have of which all get a request unasked.
const maxUnasked = 10

// aim is whom a request is sent to.
type aim struct {
	list []fleet.Target
	// known are the nodes of the fleet, or those that an expression selected.
	known    knownNodes
	selected bool
	// all is how many nodes get the request where it is for all of the fleet, else 0.
	all int
	// undecided is the error of nodes of which nobody knows whether they are targets.
	undecided error
}

// knownNodes are the nodes of a fleet that were read before.
type knownNodes []model.Node

// Nodes returns the nodes.
func (l knownNodes) Nodes(context.Context) ([]model.Node, error) { return l, nil }

// targets returns the expression of the targets, or without one the list of them.
func (c *ensureCommand) targets() (*target.Expression, []fleet.Target, error) {
	on, err := c.On.Compile(c.Env, c.Expression())
	switch {
	case err != nil:
		return nil, nil, err
	case on == nil:
		list, err := c.TargetList()
		return nil, list, err
	case c.All():
		return nil, nil, cli.Usagef("--on selects among all nodes: leave --all out")
	default:
		return on, nil, nil
	}
}

// aim reads the nodes, and finds those that an expression selects.
func (c *ensureCommand) aim(ctx context.Context, store *fleetcli.Store, on *target.Expression, list []fleet.Target) (aim, error) {
	if on == nil {
		known, err := store.Nodes(ctx)
		out := aim{list: list, known: known}
		if c.All() {
			out.all = len(known)
		}
		return out, err
	}
	found, err := store.SelectNow(ctx, on)
	if err != nil {
		return aim{}, err
	}
	out := aim{list: found.Targets(), known: found.Nodes, selected: true, undecided: fleetcli.UndecidedError(found)}
	if len(found.Nodes) == found.Known {
		out.all = found.Known
	}
	if !c.IsDocument() {
		c.Print.Remark("%d of %d nodes match", len(found.Nodes), found.Known)
	}

	return out, nil
}

// confirm asks before a request to all of a fleet that is not small.
func (c *ensureCommand) confirm(a aim) error {
	if a.all <= maxUnasked || c.yes {
		return nil
	}

	return c.Confirm("nothing was sent", fmt.Sprintf("the request is for all %d nodes", a.all))
}

// warn warns of targets that nobody is in, and of nodes that do not answer.
func (c *ensureCommand) warn(a aim) {
	if a.selected {
		fleetcli.WarnStopped(c.Log, []fleet.Target{{Group: model.GroupAll}}, a.known)
		return
	}
	// Of no target at all the error tells.
	if c.isAnyKnown(a.list, a.known) {
		fleetcli.WarnUnknown(c.Log, a.list, a.known)
	}
	fleetcli.WarnStopped(c.Log, a.list, a.known)
}
