package agent

import (
	"context"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/lanes"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// hands are the runs that the loop has begun. They go on in goroutines of their own, and
// touch what the loop has just while they hold the turn, as the loop does while it works.
// Make it with newHands.
type hands struct {
	lanes *lanes.Lanes
	// turn is a channel and no mutex, so that tests with a clock of their own see who waits.
	turn chan struct{}
	all  sync.WaitGroup
	// ended is notified after each run.
	ended tasks.Signal
}

func newHands(ended tasks.Signal) *hands {
	return &hands{lanes: lanes.New(), turn: make(chan struct{}, 1), ended: ended}
}

// lock takes the turn.
func (h *hands) lock() { h.turn <- struct{}{} }

func (h *hands) unlock() { <-h.turn }

// begin has a run go on in a goroutine, behind those that began before. The turn is held.
func (h *hands) begin(kind lanes.Kind, key string, run func(*lanes.Lane)) {
	lane := h.lanes.Enter(kind, key, time.Now())
	h.all.Go(func() {
		defer func() {
			h.lock()
			lane.Leave()
			h.unlock()
			h.ended.Notify()
		}()
		run(lane)
	})
}

// isEmpty reports whether no run goes on. The turn is held.
func (h *hands) isEmpty() bool {
	return h.lanes.Len(lanes.Manifest)+h.lanes.Len(lanes.Part)+h.lanes.Len(lanes.Request) == 0
}

// await waits until a run may begin, and returns its graph. prepare returns what runs; it
// is called again after waiting for others, which may have changed what it reads. waits is
// called with what the run waits for, begun when it begins; all of them hold the turn.
func (h *hands) await(ctx context.Context, lane *lanes.Lane, prepare func() (*graph.Graph, error), waits func(*lanes.Lane), begun func(*graph.Graph)) (*graph.Graph, error) {
	try := func() (g *graph.Graph, changed <-chan struct{}, err error) {
		h.lock()
		defer h.unlock()
		if g, err = prepare(); err != nil {
			return nil, nil, err
		}
		blocker := lane.Begin(g)
		if blocker == nil {
			begun(g)
			return g, nil, context.Cause(ctx)
		}
		waits(blocker)

		return nil, h.lanes.Changed(), nil
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
			h.lock()
			free, changed = lane.Blocker() == nil, h.lanes.Changed()
			h.unlock()
		}
	}
}
