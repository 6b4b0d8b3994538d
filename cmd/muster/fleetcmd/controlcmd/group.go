package controlcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/kvstore/control"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// groupCommand is muster fleet group.
type groupCommand struct {
	aim
	print.Format
	fleetcli.Signing
	confirmWait
	args []string
}

// grouped are the groups that operators put a node into.
type grouped struct {
	written
	Groups []string `json:"groups"`
	// Nodes are what the nodes do that come into groups, or leave them.
	Nodes []confirmation `json:"nodes,omitempty"`
	// left are the groups that it had before.
	left []string
}

// AddGroup adds muster fleet group.
func AddGroup(env *cli.Env, parent *fisk.CmdClause) {
	c := &groupCommand{}
	cmd := parent.Command("group", "Put nodes into groups, or take them out again")
	cmd.HelpLong("+NAME puts a node into a group, beside those of its configuration; NAME- takes it out of a group that it was put into here. A node takes part once NATS permits it the group, see muster fleet permissions; until then it says what is not permitted. The command waits until the nodes that come into groups or leave them say how that went; those that cannot be reached are named, and do it when they are back. Exit code 0: no node that can be reached refuses it or lacks permissions, and each confirmed it within --timeout.\n\n" +
		"  muster fleet group web01 +canary old-\n  muster fleet group web01 web02 +canary\n  muster fleet group --on 'labels.rack == \"a3\"' +a3")
	cmd.Arg("arguments", "Nodes, unless --node or --on is given, and changes of groups").Required().HintAction(env.CompleteNodes).StringsVar(&c.args)
	c.refusesUnknown = true
	c.add(env, cmd, false)
	c.addWait(cmd)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// groupSyntax is how changes of groups are written.
var groupSyntax = syntax{
	noun: "group", usage: "+NAME to put nodes into a group, NAME- to take them out of it", conflict: "is both joined and left",
	set: func(arg string) (name, value string, ok bool) {
		name, ok = strings.CutPrefix(arg, "+")
		return name, "", ok
	},
}

func (c *groupCommand) run(ctx context.Context) error {
	nodes, edit, err := c.parse(c.args, groupSyntax)
	if err != nil {
		return err
	}
	if err := (model.Groups{Protocol: model.ProtocolGroups, Groups: edit.names()}).Check(); err != nil {
		return cli.Usagef("%w", err)
	}
	c.refusesUnknown = len(edit.set) > 0 // what was written about one can be taken back
	found, err := c.begin(ctx, nodes, &c.Signing, c.check)
	if err != nil {
		return err
	}
	states := found.states()
	groups := updater[model.Groups]{
		bucket: control.New(found.store.KV).By(fleetcli.Operator()), name: model.ControlGroups, decode: decodeGroups, change: edit.groups,
		// With a key to sign with, what is there is signed again.
		idle: func(before model.Groups) bool {
			return found.signer == nil && edit.isIdle(func(name string) bool { return slices.Contains(before.Groups, name) })
		},
		sign: func(family string, now model.Groups, value, current []byte) ([]byte, error) {
			return c.sign(ctx, found.signer, family, edit.kept(now), value, current)
		},
	}
	done, failed := eachTarget(found.targets, func(t fleet.Target) (grouped, error) {
		u, err := groups.update(ctx, t.String())
		if err == nil {
			c.warnStays(t.Node, edit, u.before, states[t.Node])
		}
		return grouped{written: u.written, Groups: u.now.Groups, left: edit.left(u.before)}, err
	})
	confirmed, waited := c.awaitGroups(ctx, found.store, found.known, edit, done)
	err = c.Print.Result(c.Format, done, func() {
		all, lines := make([]written, len(done)), make([]string, len(done))
		for i, g := range done {
			all[i], lines[i] = g.written, g.line(cmp.Or(strings.Join(g.Groups, ", "), "no groups"))
		}
		printWritten(c.Print, "groups", all, lines)
		printConfirmations(c.Print, confirmed)
	})

	return errors.Join(failed, err, waited, found.undecided)
}

// awaitGroups waits until the nodes that come into groups, or leave them, say how that went, and notes what they do.
func (c *groupCommand) awaitGroups(ctx context.Context, store *fleetcli.Store, known []model.Node, e edit, done []grouped) ([]writtenChange, error) {
	var all []writtenChange
	var of []int
	for i, g := range done {
		if len(e.set)+len(g.left) == 0 {
			continue
		}
		family, _, _ := model.SplitKey(g.Key)
		all = append(all, writtenChange{target: fleet.Target{Node: strings.TrimPrefix(family, model.NodeFamily(""))}, change: &regrouping{key: g.Key, joined: e.names(), left: g.left}})
		of = append(of, i)
	}
	c.failed = "written, and not in effect on"
	err := c.await(ctx, c.Env, store, known, all)
	for i, w := range all {
		done[of[i]].Nodes = w.Nodes
	}

	return all, err
}

// warnStays warns of groups that a node is taken out of here, and that its own configuration has. A
// state from before the change has those that operators put it into, too.
func (c *groupCommand) warnStays(node string, e edit, before model.Groups, state model.Node) {
	for _, name := range e.remove {
		if slices.Contains(state.Groups, name) && !slices.Contains(before.Groups, name) {
			c.Log.Warn("the node stays in a group that it was not put into here: its configuration has to leave it out", "node", node, "group", name)
		}
	}
}

// sign signs groups where there is something to sign with. Those that are kept may be of anybody who
// can write to the bucket, so they are signed only by who agrees to it.
func (c *groupCommand) sign(ctx context.Context, signer *signing.Signing, family string, kept []string, value, current []byte) ([]byte, error) {
	switch {
	case signer == nil:
		if signed.IsEnvelope(current) {
			c.Log.Warn("unsigned, unlike what it replaces: nodes that demand signatures reject it (give --sign-key FILE)", "key", model.Key(family, model.ControlGroups))
		}
		return value, nil
	case len(kept) > 0 && !c.yes:
		if err := c.Confirm("nothing was written for "+family, fmt.Sprintf("this also signs the groups that %s was put into before: %s", family, strings.Join(kept, ", "))); err != nil {
			return nil, err
		}
	}

	return signer.Groups(ctx, family, value, current)
}

// decodeGroups decodes groups, signed or not.
func decodeGroups(value []byte) (model.Groups, error) {
	content, err := signed.Content(value)
	if err != nil {
		return model.Groups{}, err
	}

	return model.DecodeGroups(content)
}

// groups returns what becomes of groups, in order.
func (e edit) groups(before model.Groups) model.Groups {
	now := slices.Concat(before.Groups, e.names())
	now = slices.DeleteFunc(now, func(g string) bool { return slices.Contains(e.remove, g) })
	slices.Sort(now)

	return model.Groups{Protocol: model.ProtocolGroups, Groups: append([]string{}, slices.Compact(now)...)}
}

// left returns the groups of before that are taken out.
func (e edit) left(before model.Groups) []string {
	return slices.DeleteFunc(slices.Clone(before.Groups), func(g string) bool { return !slices.Contains(e.remove, g) })
}

// kept returns the groups that are none of those that are joined now.
func (e edit) kept(now model.Groups) []string {
	return slices.DeleteFunc(slices.Clone(now.Groups), func(g string) bool {
		_, joined := e.set[g]
		return joined
	})
}
