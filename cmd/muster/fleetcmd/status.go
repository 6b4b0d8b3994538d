package fleetcmd

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/serve"
	"github.com/musterfleet/muster/fleet/view"
)

// statusCommand implements muster fleet status.
type statusCommand struct {
	*cli.Env
	print.Format
	watch bool
}

// addStatus adds muster fleet status.
func addStatus(env *cli.Env, parent *fisk.CmdClause) {
	c := &statusCommand{Env: env}
	cmd := parent.Command("status", "Show the whole fleet on one screen")
	cmd.HelpLong("Counts nodes and manifests by their status (see muster fleet wait --help), and shows the most frequent failures, flapping resources, clock differences, waiting reports, versions, and commands to run next. Exits with code 0 even if something fails; in scripts use muster fleet wait.\n\n" +
		"With --watch it redraws the screen after each change of a node or an assignment, until ctrl-C. Without a terminal it prints one line per change.\n\n" +
		"  muster fleet status\n  muster fleet status --watch\n  muster fleet status --json | jq .failing")
	cmd.Flag("watch", "Update the screen after each change, until ctrl-C").UnNegatableBoolVar(&c.watch)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *statusCommand) run(ctx context.Context) error {
	store, err := OpenUnwarned(ctx, c.Env, NeedNodes, NeedManifests)
	if err != nil {
		return err
	}
	if c.watch {
		err := serve.Watch(ctx, servedStore(store.KV), cli.Version(), c.Log, c.shower(store))
		if errors.Is(context.Cause(ctx), cli.ErrInterrupted) {
			return nil
		}
		return err
	}
	nodes, entries, err := store.All(ctx)
	if err != nil {
		return err
	}
	s := view.SummaryOf(nodes, entries, cli.Version(), time.Now())
	s.Incomplete = append(s.Incomplete, store.Unstored(ctx, nodes).Lines()...)
	lost, err := store.Lost(ctx, s.Revisions())
	if err != nil {
		s.Incomplete = append(s.Incomplete, err.Error())
	}
	s.SetLost(lost)

	return c.Print.Result(c.Format, s, func() { screen{Printer: c.Print, names: store.KV.Names}.show(s) })
}

// shower returns a function that prints a summary. On a terminal it replaces the previous screen; elsewhere
// it prints only summaries that changed.
func (c *statusCommand) shower(store *Store) func(view.Summary) error {
	var last view.Summary
	printed := ""

	return func(s view.Summary) error {
		if !c.IsDocument() && print.IsTerminal(c.Print.Out) {
			c.Print.Clear()
			screen{Printer: c.Print, names: store.KV.Names}.show(s)
			return nil
		}
		same := last
		same.At = s.At
		text := brief(s)
		if c.IsDocument() && reflect.DeepEqual(same, s) || !c.IsDocument() && text == printed {
			return nil
		}
		last, printed = s, text

		return c.Print.Item(c.Format, s, print.Time(s.At)+"  "+text)
	}
}
