package fleetcmd

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/resources/resource"
)

// SimulateOptions are what a Fleet is made from.
type SimulateOptions struct {
	simulate.Plan
	// Rate is how many reports a second all nodes make; 0 is as many as they make by themselves.
	Rate float64
	// PerConnection is how many nodes share a connection; 0 is NodesPerConnection.
	PerConnection int
	Types         resource.Types
	Open          OpenLink
	// Log is that of the nodes; nil discards it.
	Log *slog.Logger
}

// SimulatedFleet is a simulated fleet on NATS. Make it with New.
type SimulatedFleet struct {
	*simulate.Fleet
	scripts []simulate.Script
	links   *links
}

// NewSimulation returns a fleet that has not begun. The error is that the plan is not valid.
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
		Scripts: scripts, Version: cli.Version(), Rate: o.Rate, Connect: l.connect, Control: newControls(l.first), Load: newLoader(o.Types).load, Log: o.Log,
	})

	return &SimulatedFleet{f, scripts, l}, nil
}

// Names returns the names of the nodes, in order.
func (f *SimulatedFleet) Names() []string {
	out := make([]string, len(f.scripts))
	for i, s := range f.scripts {
		out[i] = s.Node
	}

	return out
}

// CheckNames returns an error that wraps simulate.ErrTaken where a node of the same name is
// known that was not simulated, or runs.
func (f *SimulatedFleet) CheckNames(ctx context.Context, store *kvstore.Store) error {
	known, err := kvstore.NewNodes(store).Nodes(ctx)
	if err != nil && !errors.Is(err, kvstore.ErrInvalidState) {
		return err
	}

	return simulate.CheckNames(f.scripts, known)
}

// Close closes the connections of the nodes, after Run and Stop.
func (f *SimulatedFleet) Close() {
	for _, s := range f.links.stores {
		s.Conn().Close()
	}
}

// maxRemovals is how many nodes are removed at the same time.
const maxRemovals = 16

// Remove removes the states, facts and reports of the nodes, after Run.
func (f *SimulatedFleet) Remove(ctx context.Context, store *kvstore.Store) error {
	for _, s := range f.links.stores {
		select {
		case <-s.JetStream().PublishAsyncComplete(): // or a report would be stored behind the removal
		case <-ctx.Done():
			return ctx.Err()
		}
		// A state may be on its way whose answer nobody awaits any more.
		flushing, done := context.WithTimeout(ctx, kvstore.RequestTimeout)
		err := s.Conn().FlushWithContext(flushing)
		done()
		if err != nil {
			return err
		}
	}
	names := make(chan string)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range maxRemovals {
		all.Go(func() {
			for name := range names {
				err := errors.Join(kvstore.NewNodes(store).Remove(ctx, name), kvstore.NewReports(store).Remove(ctx, name))
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
	}
	for _, name := range f.Names() {
		names <- name
	}
	close(names)
	all.Wait()

	return failed
}
