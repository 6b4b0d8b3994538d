package fleetcmd

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
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
	if !store.KV.Places().InUse().IsOwn() {
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
	c.Stop.Finish(true)
	running, stop := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer stop()
	waiting.Go(func() {
		select {
		case <-c.Stop.Requested():
			stop()
		case <-running.Done():
		}
	})
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
