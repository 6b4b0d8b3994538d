package controlcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
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
	args []string
}

// grouped are the groups that operators put a node into.
type grouped struct {
	written
	Groups []string `json:"groups"`
	// before are those that it was in.
	before []string
}

// AddGroup adds muster fleet group.
func AddGroup(env *cli.Env, parent *fisk.CmdClause) {
	c := &groupCommand{}
	cmd := parent.Command("group", "Put nodes into groups, or take them out again")
	cmd.HelpLong("+NAME puts a node into a group, beside those of its configuration; NAME- takes it out of a group that it was put into here. A node takes part once NATS permits it the group, see muster fleet permissions; until then it says what is not permitted.\n\n" +
		"  muster fleet group web01 +canary old-\n  muster fleet group --on 'labels.rack == \"a3\"' +a3")
	cmd.Arg("arguments", "A node, unless --node or --on is given, and changes of groups").Required().HintAction(env.CompleteNodes).StringsVar(&c.args)
	c.add(env, cmd, false)
	c.AddSigning(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// regrouping is into which groups nodes are put, and out of which they are taken.
type regrouping struct{ join, leave []string }

// parse returns the nodes and the change of the arguments.
func (c *groupCommand) parse() (nodes []string, out regrouping, err error) {
	args := c.args
	if !c.Given("on") && !c.Given("node") {
		nodes, args = args[:1], args[1:]
	}
	for _, arg := range args {
		if name, joins := strings.CutPrefix(arg, "+"); joins {
			out.join = append(out.join, name)
			continue
		}
		name, leaves := strings.CutSuffix(arg, "-")
		if !leaves || name == "" {
			return nil, out, cli.Usagef("%q: write +NAME to put nodes into a group, NAME- to take them out of it", arg)
		}
		out.leave = append(out.leave, name)
	}
	for _, name := range out.leave {
		if slices.Contains(out.join, name) {
			return nil, out, cli.Usagef("group %s is both joined and left", name)
		}
	}
	if len(out.join)+len(out.leave) == 0 {
		return nil, out, cli.Usagef("no group: write +NAME to put nodes into one, NAME- to take them out of it")
	}
	if err := (model.Groups{Protocol: model.ProtocolGroups, Groups: out.join}).Check(); err != nil {
		return nil, out, cli.Usagef("%w", err)
	}

	return nodes, out, nil
}

func (c *groupCommand) run(ctx context.Context) error {
	nodes, change, err := c.parse()
	if err != nil {
		return err
	}
	on, list, err := c.compile(nodes)
	if err != nil {
		return err
	}
	signer, err := c.Open(c.Env)
	if err != nil {
		return err
	}
	store, err := fleetcli.Open(ctx, c.Env)
	if err != nil {
		return err
	}
	found, err := c.find(ctx, store, on, list)
	if err != nil {
		return err
	}
	bucket := control.New(store.KV).By(fleetcli.Operator())
	var done []grouped
	var failed []error
	for _, t := range found.targets {
		g, err := c.change(ctx, bucket, signer, t.String(), change)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, g)
		for _, name := range change.leave {
			// A state from before the change has the groups that the change takes it out of, too.
			if slices.Contains(found.states[t.Node].Groups, name) && !slices.Contains(g.before, name) {
				c.Log.Warn("the node stays in a group that it was not put into here: its configuration has to leave it out", "node", t.Node, "group", name)
			}
		}
	}
	err = c.Print.Result(c.Format, done, func() {
		for _, g := range done {
			c.Print.Printf("%s revision %d: %s\n", g.Key, g.Revision, groupLine(g.Groups))
		}
	})

	return errors.Join(append(failed, err, found.undecided)...)
}

// groupLine returns groups in a line.
func groupLine(groups []string) string {
	if len(groups) == 0 {
		return "no groups"
	}

	return strings.Join(groups, ", ")
}

// change changes the groups of a node.
func (c *groupCommand) change(ctx context.Context, bucket control.Bucket, signer *signing.Signing, family string, change regrouping) (out grouped, err error) {
	for range maxTries {
		if out, err = c.changeOnce(ctx, bucket, signer, family, change); !errors.Is(err, control.ErrChanged) {
			break
		}
	}

	return out, err
}

func (c *groupCommand) changeOnce(ctx context.Context, bucket control.Bucket, signer *signing.Signing, family string, change regrouping) (grouped, error) {
	key := model.Key(family, model.ControlGroups)
	current, err := bucket.Get(ctx, key)
	if err != nil && !errors.Is(err, model.ErrNotFound) {
		return grouped{}, err
	}
	var before []string
	if err == nil {
		if before, err = groupsIn(current.Value); err != nil {
			return grouped{}, fmt.Errorf("%s: %w (remove it: nats kv del)", key, err)
		}
	}
	now := model.Groups{Protocol: model.ProtocolGroups, Groups: change.of(before)}
	if err := now.Check(); err != nil {
		return grouped{}, fmt.Errorf("%s: %w", key, err)
	}
	value, err := model.EncodeJSON(now)
	if err != nil {
		return grouped{}, err
	}
	if value, err = c.sign(ctx, signer, family, now.Groups, change, value, current.Value); err != nil {
		return grouped{}, err
	}
	revision, err := bucket.Replace(ctx, key, current.Revision, value)

	return grouped{written{key, revision}, now.Groups, before}, err
}

// sign signs groups where there is something to sign with. Groups that are there already may be
// of anybody who can write to the bucket, so they are signed only by who agrees to it.
func (c *groupCommand) sign(ctx context.Context, signer *signing.Signing, family string, groups []string, change regrouping, value, current []byte) ([]byte, error) {
	switch kept := change.kept(groups); {
	case signer == nil:
		if signed.IsEnvelope(current) {
			c.Log.Warn("unsigned, unlike what it replaces: nodes that demand signatures reject it (give --sign-key FILE)", "key", model.Key(family, model.ControlGroups))
		}
		return value, nil
	case len(kept) > 0 && !c.yes:
		if err := c.Confirm("nothing was written for "+family, fmt.Sprintf("this also signs the groups that %s was put into before: %s", family, groupLine(kept))); err != nil {
			return nil, err
		}
	}

	return signer.Groups(ctx, family, value, current)
}

// groupsIn returns the groups of a value, signed or not.
func groupsIn(value []byte) ([]string, error) {
	content, err := signed.Content(value)
	if err != nil {
		return nil, err
	}
	g, err := model.DecodeGroups(content)

	return g.Groups, err
}

// of returns what becomes of groups, in order.
func (r regrouping) of(groups []string) []string {
	out := slices.Concat(groups, r.join)
	out = slices.DeleteFunc(out, func(g string) bool { return slices.Contains(r.leave, g) })
	slices.Sort(out)

	return append([]string{}, slices.Compact(out)...)
}

// kept returns the groups that are none of those that are joined now.
func (r regrouping) kept(groups []string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return slices.Contains(r.join, g) })
}
