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

// aim selects the nodes of a command that writes control documents.
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

// states returns the node states by node name.
func (s selection) states() map[string]model.Node {
	out := map[string]model.Node{}
	for _, n := range s.known {
		out[n.Node] = n
	}

	return out
}

// almostAll is the percentage of a fleet that counts as the whole fleet.
const almostAll = 90

// isAlmostAll reports whether the target groups contain almost all nodes of a fleet that is not small.
func (s selection) isAlmostAll() bool {
	hit, isGroup := len(s.nodes()), func(t fleet.Target) bool { return t.Group != "" }
	return slices.ContainsFunc(s.targets, isGroup) && hit > fleet.MaxUnconfirmed && hit*100 >= almostAll*len(s.known)
}

// begun is an open connection with the selected targets.
type begun struct {
	selection
	store *Store
	// signer is nil if there is no key to sign with.
	signer *assign.Signing
}

// begin compiles the targets, calls check, connects and selects the targets. nodes are additional target
// nodes from the arguments. A nil sign signs nothing; a nil check is skipped.
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

// find selects the nodes. It warns of unknown targets, and asks for confirmation before writing about unknown
// nodes or many nodes.
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
// expression. With --yes it does not ask.
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

// writeSummary is the new revision of a key; revision 0 means that the key has no value.
type writeSummary struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

// maxConfirmLines is the maximum number of nodes with a separate line.
const maxConfirmLines = 10

// printWritten prints one line per target. For many targets it prints their number and the first names.
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

// line formats the content of the key with its revision.
func (w writeSummary) line(content string) string {
	if w.Revision == 0 {
		return fmt.Sprintf("%s: %s\n", w.Key, content)
	}

	return fmt.Sprintf("%s revision %d: %s\n", w.Key, w.Revision, content)
}
