package live

import (
	"context"
	"fmt"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// Aim are the flags of whom a request is sent to.
type Aim struct {
	fleetcli.Targets
	fleetcli.On
	yes bool
}

// AddAim adds the flags.
func (a *Aim) AddAim(env *cli.Env, cmd *fisk.CmdClause) {
	a.AddTargets(env, cmd)
	a.AddOn(cmd)
	cmd.Flag("yes", "Skip confirmation").Short('y').UnNegatableBoolVar(&a.yes)
}

// Aimed is whom a request is sent to.
type Aimed struct {
	List []fleet.Target
	// Known are the nodes of the fleet, or those that an expression selected.
	Known Nodes
	// Undecided is the error of nodes of which nobody knows whether they are targets.
	Undecided error

	selected bool
	// on is the expression that selected the nodes, empty without one.
	on string
	// all is how many nodes get the request where it is for all of the fleet, else 0.
	all int
}

// Nodes are nodes that were read before.
type Nodes []model.Node

// Nodes returns the nodes.
func (l Nodes) Nodes(context.Context) ([]model.Node, error) { return l, nil }

// Compile returns the expression of the targets, or without one the list of them.
func (a *Aim) Compile(env *cli.Env) (*targets.Expression, []fleet.Target, error) {
	return a.CompileOr(env, &a.Targets)
}

// Find reads the nodes, and finds those that an expression selects; matched, unless it is nil,
// is told how many of how many match.
func (a *Aim) Find(ctx context.Context, store *fleetcli.Store, on *targets.Expression, list []fleet.Target, matched func(of, known int)) (Aimed, error) {
	if on == nil {
		known, err := store.Nodes(ctx)
		out := Aimed{List: list, Known: known}
		if a.All() {
			out.all = len(known)
		}
		return out, err
	}
	found, err := store.SelectNow(ctx, on)
	if err != nil {
		return Aimed{}, err
	}
	out := Aimed{List: found.Targets(), Known: found.Nodes, selected: true, on: on.String(), Undecided: fleetcli.UndecidedError(found)}
	if len(found.Nodes) == found.Known {
		out.all = found.Known
	}
	if matched != nil {
		matched(len(found.Nodes), found.Known)
	}

	return out, nil
}

// Sender returns who sends a request to these, which are as many nodes as are known.
func (a Aimed) Sender() model.Sender {
	out := model.Sender{By: fleetcli.Operator(), Nodes: len(ask.NodesOf(a.List, a.Known)), On: a.on}
	if !a.selected {
		out.To = fleet.JoinTargets(a.List)
	}

	return out
}

// Confirm asks before a request to groups that no known node is in, or to all nodes of a fleet that is not small.
func (a *Aim) Confirm(env *cli.Env, to Aimed) error {
	const did = "sent"
	if a.yes {
		return nil
	}
	if !to.selected {
		if err := fleetcli.ConfirmUnknown(env, did, to.List, to.Known); err != nil {
			return err
		}
	}
	if to.all <= fleet.MaxUnconfirmed {
		return nil
	}

	return fleetcli.Confirm(env, did, fmt.Sprintf("the request is for all %d nodes", to.all))
}

// Warn warns of targets that nobody is in, and of nodes that do not answer. It returns what
// else may be meant where no node is asked that is known or named, empty for nothing.
func (a *Aim) Warn(env *cli.Env, to Aimed) (near string) {
	if to.selected {
		fleetcli.WarnStopped(env.Log, []fleet.Target{{Group: model.GroupAll}}, to.Known)
		return ""
	}
	isKnown, near := isAnyKnown(to.List, to.Known)
	// Of no target at all the error tells.
	if isKnown {
		fleetcli.WarnUnknown(env.Log, to.List, to.Known)
	}
	fleetcli.WarnStopped(env.Log, to.List, to.Known)

	return near
}

// isAnyKnown reports whether a node is asked that is known, or named; else it returns what may
// be meant.
func isAnyKnown(list []fleet.Target, known []model.Node) (is bool, meant string) {
	for _, t := range list {
		if t.Node != "" || slices.ContainsFunc(known, func(n model.Node) bool { return t.Includes(n.NodeState) }) {
			return true, meant
		}
		if near := fleetcli.NearTarget(t, known); near != "" {
			meant = ", did you mean " + near + "?"
		}
	}

	return false, meant
}
