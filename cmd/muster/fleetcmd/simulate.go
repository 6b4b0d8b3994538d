package fleetcmd

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/choria-io/fisk"
	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// simulateCommand implements muster fleet simulate.
type simulateCommand struct {
	*cli.Env
	simulate.Plan
	rate float64
	keep bool
}

// addSimulate adds the hidden command for tests, demos and measurements.
func addSimulate(env *cli.Env, parent *fisk.CmdClause) {
	c := &simulateCommand{Env: env}
	cmd := parent.Command("simulate", "Simulate the agents of many nodes, for tests, demos and measurements").Hidden()
	cmd.HelpLong("The nodes are named sim-0001, sim-0002 … and are in the group sim and in the group of their role: sim-web, sim-db or sim-cache. Each follows its assignments, reports simulated results, answers requests, and obeys pauses, labels and groups. They change no machine, treat every condition as true, and do not unpack bundles. They are nodes in the account of the administrators, so requests of the account REQUESTERS, for example from a dashboard, do not reach them. Ctrl-C removes the nodes and their reports.\n\n" +
		"  muster fleet simulate --nodes 500\n" +
		"  muster fleet simulate --nodes 5000 --scenario stable --rate 2000\n" +
		"  muster fleet simulate --nodes 50 --seed 7 --keep")
	cli.Int(cmd.Flag("nodes", "Number of nodes").Default("25").PlaceHolder("N"), &c.Nodes)
	cli.Enum(cmd.Flag("scenario", "How nodes behave").Default(simulate.DefaultScenario), &c.Scenario, simulate.Scenarios()...)
	cmd.Flag("seed", "Seed for the facts and failures of the nodes").Default("1").Uint64Var(&c.Seed)
	cmd.Flag("rate", "Total reports per second; 0 uses the natural rate").Default("0").Float64Var(&c.rate)
	cmd.Flag("run-time", "Maximum duration of a run").Default(simulate.DefaultRunTime.String()).DurationVar(&c.RunTime)
	cmd.Flag("keep", "Keep the nodes at the end, as stopped nodes with their reports").UnNegatableBoolVar(&c.keep)
	cmd.Action(env.Action(c.run))
}

// SimulateGCPercent is the garbage collection target of the simulation. Each collection scans the stacks of
// more than 30 goroutines per node, so it runs less often than by default.
const SimulateGCPercent = 400

func (c *simulateCommand) run(ctx context.Context) error {
	if c.Nodes < 1 || c.rate < 0 || c.RunTime <= 0 {
		return cli.Usagef("--nodes and --run-time must be more than 0, --rate at least 0")
	}
	store, err := Open(ctx, c.Env, NeedNodes, NeedReports)
	if err != nil {
		return err
	}
	if err := store.KV.Ready(ctx); err != nil {
		return err
	}
	if !store.KV.API.InUse().IsOwn() {
		return cli.Usagef("only administrators can simulate nodes")
	}
	f, err := NewSimulation(SimulateOptions{Plan: c.Plan, Rate: c.rate, Types: c.Types, Open: c.OpenAnother})
	if err != nil {
		return err
	}
	if err := f.CheckNames(ctx, store.KV); err != nil {
		return err
	}
	debug.SetGCPercent(SimulateGCPercent)
	// The first interrupt stops and removes the nodes; the second one stops the removal.
	running, stop := c.Stop.Gentle(ctx)
	defer stop()
	defer f.Close()
	began := time.Now()
	err = f.Run(running, func() {
		names := f.Names()
		c.Print.Printf("%s joined within %s: %s to %s; ctrl-C stops them\n", print.Count(len(names), "simulated node"), time.Since(began).Round(time.Millisecond), names[0], names[len(names)-1])
		c.Print.Remark("only requests of administrators reach these nodes; users of the account REQUESTERS (fleet permissions --requests), such as a dashboard, get no answer to run and preview")
	})

	return errors.Join(err, c.end(ctx, f, store.KV))
}

// end removes the nodes and their data, or stops them with --keep.
func (c *simulateCommand) end(ctx context.Context, f *SimulatedFleet, store *kvstore.Store) error {
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	if c.keep {
		f.Stop(ctx)
		return nil
	}

	return f.Remove(ctx, store)
}

// endTimeout limits the time for the end.
const endTimeout = 2 * time.Minute

// SimulateOptions configures a SimulatedFleet.
type SimulateOptions struct {
	simulate.Plan
	// Rate is the total number of reports per second; 0 uses the natural rate.
	Rate float64
	// PerConnection is the number of nodes that use one connection; 0 means NodesPerConnection.
	PerConnection int
	Types         resource.Types
	Open          OpenLink
	// Log is the logger of the nodes; nil discards logs.
	Log *slog.Logger
}

// SimulatedFleet is a simulated fleet on NATS. Create it with NewSimulation.
type SimulatedFleet struct {
	*simulate.Fleet
	scripts []simulate.Script
	links   *links
}

// NewSimulation returns a fleet that is not running yet. It returns an error for an invalid plan.
func NewSimulation(o SimulateOptions) (*SimulatedFleet, error) {
	scripts, err := simulate.Scripts(o.Plan)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.PerConnection <= 0 {
		o.PerConnection = NodesPerConnection
	}
	l := &links{open: o.Open, each: o.PerConnection, log: o.Log}
	f := simulate.New(simulate.Options{
		Scripts: scripts, Version: cli.Version(), Rate: o.Rate, Connect: l.connect, Types: o.Types, Log: o.Log,
	})

	return &SimulatedFleet{f, scripts, l}, nil
}

// Names returns the names of the nodes, sorted.
func (f *SimulatedFleet) Names() []string {
	out := make([]string, len(f.scripts))
	for i, s := range f.scripts {
		out[i] = s.Node
	}

	return out
}

// CheckNames returns an error that wraps simulate.ErrTaken if a real node, or a running simulated node, has
// one of the names.
func (f *SimulatedFleet) CheckNames(ctx context.Context, store *kvstore.Store) error {
	known, err := kvstore.NewNodes(store).Nodes(ctx)
	if err != nil {
		return err
	}

	return simulate.CheckNames(f.scripts, known)
}

// Close closes the connections of the nodes, after Run and Stop.
func (f *SimulatedFleet) Close() {
	for _, s := range f.links.stores {
		s.Conn.Close()
	}
}

// maxRemovals is the maximum number of concurrent removals.
const maxRemovals = 16

// Remove removes the states, facts and reports of the nodes, after Run.
func (f *SimulatedFleet) Remove(ctx context.Context, store *kvstore.Store) error {
	for _, s := range f.links.stores {
		select {
		case <-s.JetStream().PublishAsyncComplete(): // otherwise a report could arrive after the removal
		case <-ctx.Done():
			return ctx.Err()
		}
		// A state may still be in flight after its request was abandoned.
		flushing, done := context.WithTimeout(ctx, kvstore.RequestTimeout)
		err := s.Conn.FlushWithContext(flushing)
		done()
		if err != nil {
			return err
		}
	}
	var all errgroup.Group
	all.SetLimit(maxRemovals)
	for _, name := range f.Names() {
		all.Go(func() error {
			return errors.Join(kvstore.NewNodes(store).Remove(ctx, name), kvstore.NewReports(store).Remove(ctx, name))
		})
	}

	return all.Wait()
}

// NodesPerConnection is the number of nodes that use one connection. Each node has its own subscriptions, so
// the server delivers the same messages as to agents. With one connection per node, a push takes twice the
// CPU time and the server twice the memory (docs/performance.md), mostly for sockets, which the simulation
// does not measure.
const NodesPerConnection = 250

// OpenLink connects to NATS. It calls onStatus for each change of the connection.
type OpenLink func(ctx context.Context, onStatus func(connect.Status)) (*kvstore.Store, error)

// links connects nodes to NATS, many nodes per connection.
type links struct {
	open OpenLink
	// each is the number of nodes per connection.
	each int
	log  *slog.Logger

	stores []*kvstore.Store
	last   *connection
}

// connection is a connection of several nodes.
type connection struct {
	store *kvstore.Store

	mu sync.Mutex
	// nodes are callbacks for a reconnect.
	nodes []func()
}

func (c *connection) changed(s connect.Status) {
	if !s.Connected || s.Err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, connected := range c.nodes {
		connected()
	}
}

// connect connects a node to NATS.
func (l *links) connect(ctx context.Context, s simulate.Script, connected func()) (simulate.Link, error) {
	if l.last == nil || len(l.last.nodes) >= l.each {
		c := &connection{}
		store, err := l.open(ctx, c.changed)
		if err != nil {
			return simulate.Link{}, err
		}
		c.store, l.last = store, c
		l.stores = append(l.stores, store)
	}
	l.last.mu.Lock()
	l.last.nodes = append(l.last.nodes, connected)
	l.last.mu.Unlock()
	store := l.last.store

	return simulate.Link{
		Assignments: watch.New(store, watch.Options{Node: s.Node, Groups: s.Groups, Log: l.log}),
		Control:     watch.NewControl(store, watch.Options{Node: s.Node, Groups: s.Groups, Log: l.log}),
		States:      kvstore.NewNodes(store),
		Publisher:   kvstore.NewReports(store),
		Serve: func(ctx context.Context, n *simulate.Node) error {
			for ctx.Err() == nil {
				if err := serveNode(ctx, requests.New(store), n, l.log); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// serveNode answers requests to a node, and handles its queued requests, until its groups change.
func serveNode(ctx context.Context, client requests.Client, n *simulate.Node, log *slog.Logger) error {
	o := requests.ServeOptions{
		Node: n.Name(), Groups: n.Groups(), Version: n.Version(), Log: log, Ready: n.Listening, Ensure: n.Requests().Ensure, Run: n.Requests().Run, Preview: n.Previews().Preview, Status: n.Requests().Status,
		Facts: func(context.Context, []byte) (any, error) { return n.Facts(), nil },
		Ping:  func(context.Context, []byte) (any, error) { return n.State(), nil },
	}

	return client.ServeAll(ctx, n.GroupsChanged(), o, func(_ context.Context, c requests.Command) error {
		if c.Refused == nil {
			n.Requests().Command(c.Sender, c.ID, c.Data)
		}
		return nil
	})
}
