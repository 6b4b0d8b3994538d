package fleetcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// groupCommand implements muster fleet group.
type groupCommand struct {
	controlCommand
	args []string
	// order shows or sets the priority of groups.
	order bool
}

// grouped is the result for one node.
type grouped struct {
	*written
	Groups []string `json:"groups"`
	// Order lists the groups that take priority.
	Order []string `json:"order,omitempty"`
}

// addGroup adds muster fleet group.
func addGroup(env *cli.Env, parent *fisk.CmdClause) {
	c := &groupCommand{}
	cmd := parent.Command("group", "Add nodes to groups, or remove them")
	cmd.HelpLong("+NAME adds nodes to a group; NAME- removes them from a group that this command added. Groups in a node's agent.yaml stay. Waits for reachable nodes to confirm; unreachable nodes are listed and apply the change later. A node needs NATS permissions for a new group, see muster fleet permissions.\n\n" +
		"Where several groups assign a manifest of one name, groups added here win over groups in agent.yaml. --order shows the order of each node, the group that wins first. --order A,B sets it, --order A, puts one group first, --order default resets it.\n\n" +
		"  muster fleet group web01 +canary old-\n  muster fleet group web01 web02 +canary\n  muster fleet group --on 'labels.rack == \"a3\"' +a3\n  muster fleet group web01 --order\n  muster fleet group web01 --order canary,web")
	cmd.Arg("arguments", "Nodes, unless --node or --on is given, and changes of groups").HintAction(env.CompleteNodes).StringsVar(&c.args)
	c.refusesUnknown = true
	c.add(env, cmd, false)
	cmd.Flag("order", "Show which group wins, or set the order").UnNegatableBoolVar(&c.order)
	c.addWait(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// defaultOrder resets the order of groups.
const defaultOrder = "default"

// takeOrder removes the order from the arguments and returns it. isSet is false if the arguments have no order.
func (c *groupCommand) takeOrder() (order []string, isSet bool) {
	at := slices.IndexFunc(c.args, func(arg string) bool { return arg == defaultOrder || strings.Contains(arg, ",") })
	if !c.order || at < 0 {
		return nil, false
	}
	if text := c.args[at]; text != defaultOrder {
		order = strings.Split(strings.TrimSuffix(text, ","), ",")
	}
	c.args = slices.Delete(c.args, at, at+1)

	return order, true
}

// parseGroups adds the nodes to the targets, and returns the changes of groups and of their order.
func (c *groupCommand) parseGroups() (e ask.Edit, err error) {
	order, isSet := c.takeOrder()
	if c.order && !slices.ContainsFunc(c.args, groupSyntax.isChange) {
		for _, name := range c.args {
			c.nodes = append(c.nodes, cli.NodeID(name))
		}
	} else if e, err = c.parse(c.args, groupSyntax); err != nil {
		return e, err
	}
	e.Order, e.SetsOrder = order, isSet

	return e, nil
}

// showOrder prints the groups of nodes, the winning group first.
func (c *groupCommand) showOrder(ctx context.Context) error {
	found, err := c.open(ctx, c.Env, nil, nil, NeedNodes, NeedControl)
	if err == nil {
		err = NoSuchTargets(found.targets, found.known)
	}
	if err != nil {
		return err
	}
	states := found.states()
	type ordered struct {
		Node   string   `json:"node"`
		Groups []string `json:"groups"`
	}
	all := make([]ordered, len(found.targets))
	for i, t := range found.targets {
		all[i] = ordered{t.Node, append(slices.Clone(states[t.Node].Groups), model.GroupAll)}
	}
	err = c.Print.Result(c.Format, all, func() {
		rows := make([][]string, len(all))
		for i, n := range all {
			rows[i] = []string{n.Node, strings.Join(n.Groups, ", ")}
		}
		c.Print.Table([]string{"NODE", "GROUPS, THE FIRST WINS"}, rows, "")
	})

	return errors.Join(err, found.undecided)
}

// groupSyntax is how changes of groups are written.
var groupSyntax = syntax{
	noun: "group", usage: "+NAME to add nodes to a group, NAME- to remove them", conflict: "is both joined and left",
	set: func(arg string) (name, value string, ok bool) {
		name, ok = strings.CutPrefix(arg, "+")
		return name, "", ok
	},
}

func (c *groupCommand) run(ctx context.Context) error {
	edit, err := c.parseGroups()
	if err != nil {
		return err
	}
	if err := (model.Groups{Protocol: model.ProtocolGroups, Groups: edit.Names(), Order: edit.Order}).Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	if len(edit.Set)+len(edit.Remove) == 0 && !edit.SetsOrder {
		return c.showOrder(ctx)
	}
	c.refusesUnknown = len(edit.Set) > 0 // groups of an unknown node can still be removed
	found, err := c.begin(ctx)
	if err != nil {
		return err
	}
	WarnUnknown(c.Log, found.targets, found.known)
	states := found.states()
	groups := ask.Updater[model.Groups]{
		Bucket: kvstore.NewControl(found.store.KV).By(Operator()), Name: model.ControlGroups, Decode: ask.DecodeGroups,
		Change: func(before model.Groups) (model.Groups, bool) {
			now, idle := edit.Groups(before)
			return now, idle && found.signer == nil // with a signing key, an unchanged document is signed again
		},
		Sign: func(family string, now model.Groups, value, current []byte) ([]byte, error) {
			return c.sign(ctx, found.signer, family, edit.Kept(now), value, current)
		},
	}
	var all []*written
	done, failed := eachTarget(found.targets, func(t fleet.Target) (grouped, error) {
		u, err := groups.Update(ctx, t)
		w := newWritten(u.Key, u.Revision, t, cmp.Or(model.Groups{Groups: u.Now.Groups, Order: u.Now.Order}.String(), "no groups"))
		if err == nil {
			c.warnStays(t.Node, edit, u.Before, states[t.Node])
			c.warnOrder(t.Node, u.Now, states[t.Node])
			if left := edit.Left(u.Before); len(edit.Set)+len(left)+len(edit.Order) > 0 {
				w.change = ask.GroupsChange{ControlKey: w.Key, Joined: edit.Names(), Left: left, Order: edit.Order}
			}
			all = append(all, w)
		}
		return grouped{w, u.Now.Groups, u.Now.Order}, err
	})

	return c.conclude(ctx, found, "groups", done, all, failed)
}

// warnStays warns if a node remains in a removed group because its own configuration has it. An outdated
// state also lists groups from operators, so groups of the previous document do not count.
func (c *groupCommand) warnStays(node string, e ask.Edit, before model.Groups, state model.Node) {
	for _, name := range e.Remove {
		if slices.Contains(state.Groups, name) && !slices.Contains(before.Groups, name) {
			c.Log.Warn("node remains in the group: it is set in the node's agent.yaml", "node", node, "group", name)
		}
	}
}

// warnOrder logs a warning for each group in the order without this node.
func (c *groupCommand) warnOrder(node string, now model.Groups, state model.Node) {
	for _, name := range now.Order {
		if !slices.Contains(now.Groups, name) && !slices.Contains(state.Groups, name) {
			near := cli.DidYouMean(name, slices.Concat(now.Groups, state.Groups))
			c.Log.Warn("the order names a group that the node is not in"+near, "node", node, "group", name)
		}
	}
}

// sign signs the groups if there is a key. Anyone with write access may have added the existing groups, so it
// asks before signing them.
func (c *groupCommand) sign(ctx context.Context, signer *assign.Signing, family string, kept []string, value, current []byte) ([]byte, error) {
	switch {
	case signer == nil:
		if signed.IsEnvelope(current) {
			c.Log.Warn("replacing a signed value with an unsigned one; nodes that require signatures reject it (give --sign-key FILE)", "key", model.Key(family, model.ControlGroups))
		}
		return value, nil
	case len(kept) > 0 && !c.yes:
		if err := c.Confirm("not written for "+family, fmt.Sprintf("this also signs the groups that %s was put into before: %s", family, strings.Join(kept, ", "))); err != nil {
			return nil, err
		}
	}

	return signer.Sign(ctx, signed.Groups, family, value, current)
}
