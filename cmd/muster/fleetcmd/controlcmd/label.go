package controlcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore/control"
	"github.com/musterfleet/muster/model"
)

// labelCommand is muster fleet label.
type labelCommand struct {
	aim
	print.Format
	args []string
}

// labeled are the labels that operators gave a node.
type labeled struct {
	written
	Labels map[string]string `json:"labels"`
}

// AddLabel adds muster fleet label.
func AddLabel(env *cli.Env, parent *fisk.CmdClause) {
	c := &labelCommand{}
	cmd := parent.Command("label", "Give nodes labels, or take them back")
	cmd.HelpLong("NAME=VALUE sets a label, NAME- takes it back. A label that is given here wins over that of the configuration of the node, which holds again once it is taken back.\n\n" +
		"  muster fleet label web01 rack=a3 row-\n  muster fleet label --on 'group(\"web\")' tier=front")
	cmd.Arg("arguments", "A node, unless --node or --on is given, and changes of labels").Required().HintAction(env.CompleteNodes).StringsVar(&c.args)
	c.add(env, cmd, false)
	c.AddFormat(cmd)
	cmd.Action(env.Action(cli.UnlessNoop(c.run)))
}

// change sets labels, and takes others back.
type change struct {
	set  map[string]string
	take []string
}

// parse returns the nodes and the change of the arguments.
func (c *labelCommand) parse() (nodes []string, out change, err error) {
	args := c.args
	if !c.Given("on") && !c.Given("node") {
		nodes, args = args[:1], args[1:]
	}
	out.set = map[string]string{}
	for _, arg := range args {
		name, value, sets := strings.Cut(arg, "=")
		if sets {
			out.set[name] = value
			continue
		}
		name, takes := strings.CutSuffix(arg, "-")
		if !takes || name == "" {
			return nil, out, cli.Usagef("%q: write NAME=VALUE to set a label, NAME- to take it back", arg)
		}
		out.take = append(out.take, name)
	}
	for _, name := range out.take {
		if _, both := out.set[name]; both {
			return nil, out, cli.Usagef("label %s is both set and taken back", name)
		}
	}
	if len(out.set)+len(out.take) == 0 {
		return nil, out, cli.Usagef("no label: write NAME=VALUE to set one, NAME- to take it back")
	}
	if err := (model.Labels{Protocol: model.ProtocolLabels, Labels: out.set}).Check(); err != nil {
		return nil, out, cli.Usagef("%w", err)
	}

	return nodes, out, nil
}

func (c *labelCommand) run(ctx context.Context) error {
	nodes, changes, err := c.parse()
	if err != nil {
		return err
	}
	on, list, err := c.compile(nodes)
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
	var done []labeled
	var failed []error
	for _, t := range found.targets {
		l, err := changes.make(ctx, bucket, t.Key(model.ControlLabels))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, l)
	}
	err = c.Print.Result(c.Format, done, func() {
		for _, l := range done {
			c.Print.Printf("%s revision %d: %s\n", l.Key, l.Revision, print.Text(labelLine(l.Labels)))
		}
	})

	return errors.Join(append(failed, err, found.undecided)...)
}

// labelLine returns labels in a line.
func labelLine(labels map[string]string) string {
	if len(labels) == 0 {
		return "no labels"
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, name+"="+labels[name])
	}

	return strings.Join(words, ", ")
}

// maxTries is how often a change is made again because others change the same labels.
const maxTries = 5

// make changes the labels of a key.
func (ch change) make(ctx context.Context, bucket control.Bucket, key string) (out labeled, err error) {
	for range maxTries {
		if out, err = ch.makeOnce(ctx, bucket, key); !errors.Is(err, control.ErrChanged) {
			break
		}
	}

	return out, err
}

func (ch change) makeOnce(ctx context.Context, bucket control.Bucket, key string) (labeled, error) {
	current, err := bucket.Get(ctx, key)
	now := model.Labels{Protocol: model.ProtocolLabels, Labels: map[string]string{}}
	switch {
	case err == nil:
		before, err := model.DecodeLabels(current.Value)
		if err != nil {
			return labeled{}, fmt.Errorf("%s: %w (remove it: nats kv del)", key, err)
		}
		maps.Copy(now.Labels, before.Labels)
	case !errors.Is(err, model.ErrNotFound):
		return labeled{}, err
	}
	maps.Copy(now.Labels, ch.set)
	for _, name := range ch.take {
		delete(now.Labels, name)
	}
	if err := now.Check(); err != nil {
		return labeled{}, fmt.Errorf("%s: %w", key, err)
	}
	value, err := model.EncodeJSON(now)
	if err != nil {
		return labeled{}, err
	}
	revision, err := bucket.Replace(ctx, key, current.Revision, value)

	return labeled{written{key, revision}, now.Labels}, err
}
