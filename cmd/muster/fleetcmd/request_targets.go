package fleetcmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// RequestTargets are the flags of whom a request is sent to.
type RequestTargets struct {
	Targets
	On
	yes bool
}

// AddAim adds the flags.
func (a *RequestTargets) AddAim(env *cli.Env, cmd *fisk.CmdClause) {
	a.AddTargets(env, cmd)
	a.AddOn(cmd)
	cmd.Flag("yes", "Skip confirmation").Short('y').UnNegatableBoolVar(&a.yes)
}

// RequestSelection is whom a request is sent to.
type RequestSelection struct {
	List []fleet.Target
	// Known are the nodes of the fleet, or those that an expression selected.
	Known []model.Node
	// Undecided is the error of nodes of which nobody knows whether they are targets.
	Undecided error

	selected bool
	// on is the expression that selected the nodes, empty without one.
	on string
	// all is how many nodes get the request where it is for all of the fleet, else 0.
	all int
}

// Compile returns the expression of the targets, or without one the list of them.
func (a *RequestTargets) Compile(env *cli.Env) (*targets.Expression, []fleet.Target, error) {
	return a.CompileOr(env, &a.Targets)
}

// Find reads the nodes, and finds those that an expression selects; matched, unless it is nil,
// is told how many of how many match.
func (a *RequestTargets) Find(ctx context.Context, store *Store, on *targets.Expression, list []fleet.Target, matched func(of, known int)) (RequestSelection, error) {
	if on == nil {
		known, err := store.Nodes(ctx)
		out := RequestSelection{List: list, Known: known}
		if a.All() {
			out.all = len(known)
		}
		return out, err
	}
	found, err := store.SelectNow(ctx, on)
	if err != nil {
		return RequestSelection{}, err
	}
	out := RequestSelection{List: found.Targets(), Known: found.Nodes, selected: true, on: on.String(), Undecided: UndecidedError(found)}
	if len(found.Nodes) == found.Known {
		out.all = found.Known
	}
	if matched != nil {
		matched(len(found.Nodes), found.Known)
	}

	return out, nil
}

// Sender returns who sends a request to these, which are as many nodes as are known.
func (a RequestSelection) Sender() model.Sender {
	out := model.Sender{By: Operator(), Nodes: len(ask.NodesOf(a.List, a.Known)), On: a.on}
	if !a.selected {
		out.To = fleet.JoinTargets(a.List)
	}

	return out
}

// Confirm asks before a request to groups that no known node is in, or to all nodes of a fleet that is not small.
func (a *RequestTargets) Confirm(env *cli.Env, to RequestSelection) error {
	const did = "sent"
	if a.yes {
		return nil
	}
	if !to.selected {
		if err := ConfirmUnknown(env, did, to.List, to.Known); err != nil {
			return err
		}
	}
	if to.all <= fleet.MaxUnconfirmed {
		return nil
	}

	return Confirm(env, did, fmt.Sprintf("the request is for all %d nodes", to.all))
}

// Warn warns of targets that nobody is in, and of nodes that do not answer. It returns what
// else may be meant where no node is asked that is known or named, empty for nothing.
func (a *RequestTargets) Warn(env *cli.Env, to RequestSelection) (near string) {
	if to.selected {
		WarnStopped(env.Log, []fleet.Target{{Group: model.GroupAll}}, to.Known)
		return ""
	}
	isKnown, near := isAnyKnown(to.List, to.Known)
	// Of no target at all the error tells.
	if isKnown {
		WarnUnknown(env.Log, to.List, to.Known)
	}
	WarnStopped(env.Log, to.List, to.Known)

	return near
}

// isAnyKnown reports whether a node is asked that is known, or named; else it returns what may
// be meant.
func isAnyKnown(list []fleet.Target, known []model.Node) (is bool, meant string) {
	for _, t := range list {
		if t.Node != "" || slices.ContainsFunc(known, func(n model.Node) bool { return t.Includes(n.NodeState) }) {
			return true, meant
		}
		if near := NearTarget(t, known); near != "" {
			meant = ", did you mean " + near + "?"
		}
	}

	return false, meant
}
