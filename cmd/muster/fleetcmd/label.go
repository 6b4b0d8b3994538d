package fleetcmd

import (
	"cmp"
	"context"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// labelCommand implements muster fleet label.
type labelCommand struct {
	controlCommand
	args []string
}

// labeled is the result for one node.
type labeled struct {
	*written
	Labels map[string]string `json:"labels"`
}

// addLabel adds muster fleet label.
func addLabel(env *cli.Env, parent *fisk.CmdClause) {
	c := &labelCommand{}
	cmd := parent.Command("label", "Set or remove labels of nodes")
	cmd.HelpLong("NAME=VALUE sets a label, NAME- removes it. A label that is set here overrides the label in the configuration of the node until it is removed.\n\n" +
		"  muster fleet label web01 rack=a3 row-\n  muster fleet label web01 web02 rack=a3\n  muster fleet label --on 'group(\"web\")' tier=front")
	cmd.Arg("arguments", "Nodes, unless --node or --on is given, and changes of labels").Required().HintAction(env.CompleteNodes).StringsVar(&c.args)
	c.refusesUnknown = true
	c.add(env, cmd, false)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// labelSyntax describes how changes of labels are written.
var labelSyntax = syntax{
	noun: "label", usage: "NAME=VALUE to set a label, NAME- to remove it", conflict: "is both set and removed",
	set: func(arg string) (name, value string, ok bool) { return strings.Cut(arg, "=") },
}

func (c *labelCommand) run(ctx context.Context) error {
	edit, err := c.parse(c.args, labelSyntax)
	if err != nil {
		return err
	}
	if err := (model.Labels{Protocol: model.ProtocolLabels, Labels: edit.Set}).Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	c.refusesUnknown = len(edit.Set) > 0 // labels of an unknown node can still be removed
	found, err := c.begin(ctx)
	if err != nil {
		return err
	}
	WarnUnknown(c.Log, found.targets, found.known)
	labels := ask.Updater[model.Labels]{Bucket: kvstore.NewControl(found.store.KV).By(Operator()), Name: model.ControlLabels, Decode: model.DecodeLabels, Change: edit.Labels}
	var all []*written
	done, failed := eachTarget(found.targets, func(t fleet.Target) (labeled, error) {
		u, err := labels.Update(ctx, t)
		w := newWritten(u.Key, u.Revision, t, cmp.Or(print.Text(u.Now.String()), "no labels"))
		if err == nil {
			all = append(all, w)
		}
		return labeled{w, u.Now.Labels}, err
	})

	return c.conclude(ctx, found, "labels", done, all, failed)
}
