package fleetcmd

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
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
		return c.follow(ctx, store)
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

const (
	// drawPause is the minimum time between two updates of the screen.
	drawPause = 500 * time.Millisecond
	// agePause is the maximum time between two updates, so that ages and silent nodes stay current.
	agePause = 10 * time.Second
	// auditPause is the interval for reading everything again, because expired states are not announced.
	auditPause = 5 * time.Minute
)

// picture is the current state of a watched fleet.
type picture struct {
	nodes   map[string]model.Node
	entries []model.Entry
	// unstored are the documents that the server did not store at time checked. lost are the keys lost at
	// that time.
	unstored []string
	lost     map[string]bool
	checked  time.Time
}

// read reads all nodes and assignments.
func (p *picture) read(ctx context.Context, store *Store) error {
	all, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	p.nodes = map[string]model.Node{}
	for _, n := range all {
		p.nodes[n.Node] = n
	}

	return p.readEntries(ctx, store)
}

func (p *picture) readEntries(ctx context.Context, store *Store) error {
	entries, err := store.List(ctx)
	if err == nil {
		p.entries = entries
	}

	return err
}

// apply applies a change of a node.
func (p *picture) apply(c model.NodeChange) {
	if c.Gone {
		delete(p.nodes, c.Node.Node)
	} else {
		p.nodes[c.Node.Node] = c.Node
	}
}

// summary returns the overview at a time.
func (p *picture) summary(now time.Time) view.Summary {
	all := slices.SortedFunc(maps.Values(p.nodes), func(a, b model.Node) int { return strings.Compare(a.Node, b.Node) })
	for i := range all {
		all[i].Silent = all[i].IsSilent(now)
	}

	out := view.SummaryOf(all, p.entries, cli.Version(), now)
	out.Incomplete = append(out.Incomplete, p.unstored...)

	return out
}

// check returns the current summary. Every agePause it also checks for unstored documents and lost keys.
func (p *picture) check(ctx context.Context, store *Store) view.Summary {
	isDue := time.Since(p.checked) >= agePause
	if isDue {
		p.unstored, p.checked = store.Unstored(ctx, slices.Collect(maps.Values(p.nodes))).Lines(), time.Now()
	}
	out := p.summary(time.Now())
	if isDue && store.KV.Away() == nil {
		if lost, err := store.Lost(ctx, out.Revisions()); err == nil {
			p.lost = lost
		}
	}
	out.SetLost(p.lost)

	return out
}

// follow updates the screen until ctx ends.
func (c *statusCommand) follow(ctx context.Context, store *Store) error {
	err := c.redraw(ctx, store)
	if errors.Is(context.Cause(ctx), cli.ErrInterrupted) || errors.Is(err, syscall.EPIPE) {
		return nil
	}

	return err
}

func (c *statusCommand) redraw(ctx context.Context, store *Store) error {
	ctx, cancel := context.WithCancel(ctx)
	changes, keys, failed := make(chan model.NodeChange), make(chan struct{}, 1), make(chan error, 2)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() { failed <- followNodes(ctx, store, changes) })
	following.Go(func() { failed <- followKeys(ctx, store, keys) })
	var p picture
	if err := p.read(ctx, store); err != nil {
		return err
	}
	show := c.shower(store)
	draw, audit := time.NewTimer(0), time.NewTicker(auditPause)
	defer draw.Stop()
	defer audit.Stop()
	for soon, stale := false, false; ; {
		changed := false
		select {
		case change := <-changes:
			p.apply(change)
			changed = true
		case <-keys:
			changed, stale = true, true
		case <-audit.C:
			// During an outage keep the last state; the screen reports the outage.
			if err := p.read(ctx, store); err != nil && store.KV.Away() == nil && !kvstore.IsOutage(err) {
				return err
			}
		case <-draw.C:
			if stale {
				err := p.readEntries(ctx, store)
				if err != nil && store.KV.Away() == nil && !kvstore.IsOutage(err) {
					return err
				}
				stale = err != nil
			}
			if err := show(p.check(ctx, store)); err != nil {
				return err
			}
			soon = false
			draw.Reset(agePause)
		case err := <-failed:
			return err
		}
		if changed && !soon {
			soon = true
			draw.Reset(drawPause)
		}
	}
}

// followNodes sends changes of nodes until ctx ends.
func followNodes(ctx context.Context, store *Store, changes chan<- model.NodeChange) error {
	for c, err := range kvstore.NewNodes(store.KV).Watch(ctx) {
		if err != nil {
			return err
		}
		select {
		case changes <- c:
		case <-ctx.Done():
		}
	}

	return ctx.Err()
}

// followKeys sends a signal after each change of an assignment, until ctx ends. Signals may merge.
func followKeys(ctx context.Context, store *Store, keys chan<- struct{}) error {
	for err := range store.Changes(ctx) {
		if err != nil {
			return err
		}
		select {
		case keys <- struct{}{}:
		default:
		}
	}

	return ctx.Err()
}

// shower returns a function that prints a summary. On a terminal it replaces the previous screen; elsewhere
// it prints only summaries that changed.
func (c *statusCommand) shower(store *Store) func(view.Summary) error {
	var last view.Summary
	printed := ""

	return func(s view.Summary) error {
		if err := store.KV.Away(); err != nil {
			s.Incomplete = append(s.Incomplete, "NATS does not answer ("+err.Error()+"); this is the last known state")
		}
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
