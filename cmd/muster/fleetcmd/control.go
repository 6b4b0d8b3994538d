package fleetcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/model"
)

// aim selects the nodes of a command that writes about nodes.
type aim struct {
	*cli.Env
	TargetFlags
	// refusesUnknown refuses unknown nodes and asks for confirmation of unknown groups, unless yes.
	refusesUnknown bool
	// readsOnly is set if the command writes nothing: unknown nodes are an error.
	readsOnly bool
	// judgesUnknown is set if the command reports unknown targets itself.
	judgesUnknown bool
}

// add adds the flags; hasGroups adds --group and --all.
func (a *aim) add(env *cli.Env, cmd *fisk.CmdClause, hasGroups bool) {
	a.Env = env
	help := targetHelp{node: "Target node; repeatable"}
	a.remedy = "name nodes, or give --on EXPR"
	if hasGroups {
		help.group, help.all = "Target group, with the nodes that join it later; repeatable", "Target all nodes, with those that join later"
		a.remedy = "name nodes, or give --group GROUP, --on EXPR or --all"
	}
	a.TargetFlags.add(env, cmd, help)
	a.addYes(cmd)
	a.AddOn(cmd)
}

// states returns the states by name.
func (s selection) states() map[string]model.Node {
	out := map[string]model.Node{}
	for _, n := range s.known {
		out[n.Node] = n
	}

	return out
}

// almostAll is the part of a fleet, in percent, that a group has if a mistake in it is one for the whole fleet.
const almostAll = 90

// isAlmostAll reports whether groups among the targets contain almost all nodes of a fleet that is not small.
func (s selection) isAlmostAll() bool {
	hit, isGroup := len(s.nodes()), func(t fleet.Target) bool { return t.Group != "" }
	return slices.ContainsFunc(s.targets, isGroup) && hit > fleet.MaxUnconfirmed && hit*100 >= almostAll*len(s.known)
}

// begun is a connection, with whom the targets mean.
type begun struct {
	selection
	store *Store
	// signer is nil where there is nothing to sign with.
	signer *assign.Signing
}

// begin compiles the targets, checks the other flags, connects and finds whom the targets mean. nodes are those
// that are named besides by flags; sign is nil where nothing is signed, check where nothing else is checked.
func (a *aim) begin(ctx context.Context, nodes []string, sign *Signing, check func() error) (out begun, err error) {
	a.AddNames(nodes)
	on, list, err := a.Compile(a.Env)
	if err == nil && check != nil {
		err = check()
	}
	if err != nil {
		return out, err
	}
	if sign == nil {
		out.store, err = Open(ctx, a.Env, NeedNodes, NeedControl)
	} else {
		out.store, out.signer, err = OpenSigning(ctx, a.Env, sign, NeedNodes, NeedControl)
	}
	if err != nil {
		return out, err
	}
	out.selection, err = a.find(ctx, out.store, on, list)

	return out, err
}

// find selects the nodes. It warns of unknown targets, and asks before unknown or many nodes are written about.
func (a *aim) find(ctx context.Context, store *Store, on *targets.Expression, list []fleet.Target) (selection, error) {
	out, err := find(ctx, store, on, list)
	switch {
	case err != nil:
		return out, err
	case a.readsOnly:
		return out, NoSuchTargets(out.targets, out.known)
	}
	if err := a.confirm(out); err != nil {
		return out, err
	}
	if out.expression == nil && !a.judgesUnknown {
		WarnUnknown(a.Log, list, out.known)
	}

	return out, nil
}

// confirm asks before a change of unknown targets, of all or almost all nodes, or of many nodes that match an
// expression. It asks nothing with --yes.
func (a *aim) confirm(found selection) error {
	const did = "written"
	if a.yes {
		return nil
	}
	if a.refusesUnknown {
		nodes := slices.DeleteFunc(slices.Clone(found.targets), func(t fleet.Target) bool { return t.Node == "" })
		if err := NoSuchTargets(nodes, found.known); err != nil {
			return fmt.Errorf("%w\nnothing was written; --yes writes it before they are known", err)
		}
		if err := ConfirmUnknown(a.Env, did, found.targets, found.known); err != nil {
			return err
		}
	}
	switch {
	case found.isAll:
		return ConfirmAll(a.Env, did, len(found.known))
	case found.expression == nil && found.isAlmostAll():
		return Confirm(a.Env, did, fmt.Sprintf("this is for %d of %d nodes", len(found.nodes()), len(found.known)))
	case found.expression != nil && len(found.targets) > fleet.MaxUnconfirmed:
		return Confirm(a.Env, did, fmt.Sprintf("%d of %d nodes match", len(found.targets), len(found.known)))
	default:
		return nil
	}
}

// writeSummary is what was written under one key; without a revision there is nothing under it.
type writeSummary struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

// maxConfirmLines is how many nodes have a line of their own.
const maxConfirmLines = 10

// printWritten prints what was written, as lines; of many targets it prints how many there are, and the first.
func printWritten(p print.Printer, what string, all []writeSummary, lines []string) {
	if len(all) <= maxConfirmLines {
		for _, line := range lines {
			p.Printf("%s", line)
		}
		return
	}
	names, noun := make([]string, len(all)), "node"
	for i, w := range all {
		family, _, _ := model.SplitKey(w.Key)
		name, isNode := strings.CutPrefix(family, model.NodeFamily(""))
		if names[i] = name; !isNode {
			noun = "target"
		}
	}
	p.Printf("%s of %s: %s\n", what, print.Count(len(all), noun), print.Some(names, "--json has all"))
}

// line returns what is under the key, with its revision.
func (w writeSummary) line(content string) string {
	if w.Revision == 0 {
		return fmt.Sprintf("%s: %s\n", w.Key, content)
	}

	return fmt.Sprintf("%s revision %d: %s\n", w.Key, w.Revision, content)
}
