package runs

import (
	"context"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/lanes"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// Running are the runs in progress. They go on in goroutines of their own, and touch what
// they share with whoever began them just while they hold the turn, as that one does. Make
// it with NewRunning.
type Running struct {
	// Lanes decides which of them may go on. Whoever touches it holds the turn.
	Lanes *lanes.Lanes
	// turn is a channel and no mutex, so that tests with a clock of their own see who waits.
	turn chan struct{}
	all  sync.WaitGroup
	// ended is notified after each run.
	ended tasks.Signal
}

// NewRunning returns Running without runs. ended is notified after each.
func NewRunning(ended tasks.Signal) *Running {
	return &Running{Lanes: lanes.New(), turn: make(chan struct{}, 1), ended: ended}
}

// Lock takes the turn, and waits until nobody else has it.
func (r *Running) Lock() { r.turn <- struct{}{} }

// Unlock gives the turn back.
func (r *Running) Unlock() { <-r.turn }

// Begin has a run go on in a goroutine, behind those that began before. The turn is held.
func (r *Running) Begin(kind lanes.Kind, key string, run func(*lanes.Lane)) {
	lane := r.Lanes.Enter(kind, key, time.Now())
	r.all.Go(func() {
		defer func() {
			r.Lock()
			lane.Leave()
			r.Unlock()
			r.ended.Notify()
		}()
		run(lane)
	})
}

// IsEmpty reports whether no run goes on. The turn is held.
func (r *Running) IsEmpty() bool {
	return r.Lanes.Len(lanes.Manifest)+r.Lanes.Len(lanes.Part)+r.Lanes.Len(lanes.Request) == 0
}

// Wait waits for the end of all runs. None begins meanwhile.
func (r *Running) Wait() { r.all.Wait() }

// await is Runner.Await. waits is called with what the run waits for, begun when it begins;
// prepare, waits and begun hold the turn.
func (r *Running) await(ctx context.Context, lane *lanes.Lane, prepare func() (*graph.Graph, error), waits func(*lanes.Lane), begun func(*graph.Graph)) (*graph.Graph, error) {
	try := func() (g *graph.Graph, changed <-chan struct{}, err error) {
		r.Lock()
		defer r.Unlock()
		if g, err = prepare(); err != nil {
			return nil, nil, err
		}
		blocker := lane.Begin(g)
		if blocker == nil {
			begun(g)
			return g, nil, context.Cause(ctx)
		}
		waits(blocker)

		return nil, r.Lanes.Changed(), nil
	}
	for {
		g, changed, err := try()
		if g != nil || err != nil {
			return g, err
		}
		for free := false; !free; {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
			r.Lock()
			free, changed = lane.Blocker() == nil, r.Lanes.Changed()
			r.Unlock()
		}
	}
}
