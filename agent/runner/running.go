package runner

import (
	"context"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// Running are the runs in progress. They go on in goroutines of their own, and touch what
// they share with whoever began them just while they hold the turn, as that one does. Make
// it with NewRunning.
type Running struct {
	// Lanes decides which of them may go on. Whoever touches it holds the turn.
	Lanes *Lanes
	// turn is a channel and no mutex, so that tests with a clock of their own see who waits.
	turn chan struct{}
	all  sync.WaitGroup
	// ended is notified after each run.
	ended tasks.Signal
}

// NewRunning returns Running without runs. ended is notified after each.
func NewRunning(ended tasks.Signal) *Running {
	return &Running{Lanes: NewLanes(), turn: make(chan struct{}, 1), ended: ended}
}

// Lock takes the turn, and waits until nobody else has it.
func (r *Running) Lock() { r.turn <- struct{}{} }

// Unlock gives the turn back.
func (r *Running) Unlock() { <-r.turn }

// Begin starts a run in a goroutine, behind the runs that began before. part lists its resources,
// nil for a whole manifest. The turn is held.
func (r *Running) Begin(kind Kind, key string, part []model.Ref, run func(*Lane)) {
	lane := r.Lanes.Enter(kind, key, time.Now())
	lane.Part = part
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
	return r.Lanes.Len(Manifest)+r.Lanes.Len(Part)+r.Lanes.Len(Request) == 0
}

// Wait waits for the end of all runs. None begins meanwhile.
func (r *Running) Wait() { r.all.Wait() }

// await is Runner.Await. waits is called with the run that blocks this one, begun when it begins;
// both hold the turn.
func (r *Running) await(ctx context.Context, lane *Lane, prepare func() (*graph.Graph, Holds, error), waits func(*Lane), begun func(*graph.Graph)) (*graph.Graph, error) {
	for {
		g, holds, err := prepare()
		if err != nil {
			return nil, err
		}
		began, changed := r.tryBegin(lane, g, holds, waits, begun)
		if began {
			return g, context.Cause(ctx)
		}
		for free := changed == nil; !free; {
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

// tryBegin begins a run unless its graph holds no longer or another run blocks it; changed is
// closed when that one may be over.
func (r *Running) tryBegin(lane *Lane, g *graph.Graph, holds Holds, waits func(*Lane), begun func(*graph.Graph)) (began bool, changed <-chan struct{}) {
	r.Lock()
	defer r.Unlock()
	if !holds() {
		return false, nil
	}
	if blocker := lane.Begin(g); blocker != nil {
		waits(blocker)
		return false, r.Lanes.Changed()
	}
	begun(g)

	return true, nil
}
