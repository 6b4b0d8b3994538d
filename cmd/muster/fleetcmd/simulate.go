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

// simulateCommand is muster fleet simulate.
type simulateCommand struct {
	*cli.Env
	simulate.Plan
	rate float64
	keep bool
}

// addSimulate adds the command to muster fleet, hidden: it is for tests, demos and measurements.
func addSimulate(env *cli.Env, parent *fisk.CmdClause) {
	c := &simulateCommand{Env: env}
	cmd := parent.Command("simulate", "Play the agents of many nodes, for tests, demos and measurements").Hidden()
	cmd.HelpLong("The nodes are called sim-0001, sim-0002 … and are in the group sim and in the group of their role: sim-web, sim-db or sim-cache. Each follows its assignments, reports simulated results, answers requests, and obeys pauses, labels and groups. They change no machine, treat every condition as true, and do not unpack bundles. They are nodes in the account of the administrators, so requests of the account REQUESTERS, for example from a dashboard, do not reach them. Ctrl-C removes the nodes and their reports.\n\n" +
		"  muster fleet simulate --nodes 500\n" +
		"  muster fleet simulate --nodes 5000 --scenario stable --rate 2000\n" +
		"  muster fleet simulate --nodes 50 --seed 7 --keep")
	cli.Int(cmd.Flag("nodes", "Number of nodes").Default("25").PlaceHolder("N"), &c.Nodes)
	cli.Enum(cmd.Flag("scenario", "How nodes behave").Default(simulate.DefaultScenario), &c.Scenario, simulate.Scenarios()...)
	cmd.Flag("seed", "Another seed deals other facts and failures to the nodes, the same seed the same").Default("1").Uint64Var(&c.Seed)
	cmd.Flag("rate", "Reports that all nodes make a second; 0 for as many as they make by themselves").Default("0").Float64Var(&c.rate)
	cmd.Flag("run-time", "Maximum duration of a run").Default(simulate.DefaultRunTime.String()).DurationVar(&c.RunTime)
	cmd.Flag("keep", "At the end, leave the nodes behind as stopped ones, with their reports").UnNegatableBoolVar(&c.keep)
	cmd.Action(env.Action(c.run))
}

// SimulateGCPercent is by how much the heap of a process that plays many nodes grows between two
// collections: each looks at the stacks of more than 30 goroutines a node.
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
		return cli.Usagef("only administrators may play nodes")
	}
	f, err := NewSimulation(SimulateOptions{Plan: c.Plan, Rate: c.rate, Types: c.Types, Open: c.OpenAnother})
	if err != nil {
		return err
	}
	if err := f.CheckNames(ctx, store.KV); err != nil {
		return err
	}
	debug.SetGCPercent(SimulateGCPercent)
	// The first interrupt ends the nodes, which are then removed; the second ends that.
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
		c.Print.Printf("%s joined within %s: %s to %s; ctrl-C ends them\n", print.Count(len(names), "simulated node"), time.Since(began).Round(time.Millisecond), names[0], names[len(names)-1])
		c.Print.Remark("only administrators reach them at once: users of the account REQUESTERS (fleet permissions --requests), such as a dashboard's, get no answer to run and preview")
	})

	return errors.Join(err, c.end(ctx, f, store.KV))
}

// end removes what the nodes have made, or has them stop.
func (c *simulateCommand) end(ctx context.Context, f *SimulatedFleet, store *kvstore.Store) error {
	ctx, done := context.WithTimeout(ctx, endTimeout)
	defer done()
	if c.keep {
		f.Stop(ctx)
		return nil
	}

	return f.Remove(ctx, store)
}

// endTimeout bounds what is done at the end.
const endTimeout = 2 * time.Minute
