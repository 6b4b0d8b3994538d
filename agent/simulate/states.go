package simulate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

// joining tracks the steps of a joining node.
type joining struct {
	// done is closed after the last step.
	done              chan struct{}
	missing           atomic.Int32
	stored, listening sync.Once
}

// newJoining returns the steps of a node: read its assignments, store its state, listen to requests.
func newJoining() *joining {
	j := &joining{done: make(chan struct{})}
	j.missing.Store(3)

	return j
}

// note records a completed step.
func (j *joining) note() {
	if j.missing.Add(-1) == 0 {
		close(j.done)
	}
}

// states stores the states and facts of a node as its machine.
type states struct {
	status.Store
	machine *machine
	joining *joining
}

// PutState stores a state.
func (s states) PutState(ctx context.Context, state model.NodeState, ttl time.Duration) error {
	err := s.Store.PutState(ctx, s.machine.identified(state), ttl)
	if err == nil {
		s.joining.stored.Do(s.joining.note)
	}

	return err
}

// PutFacts stores the facts. It generates them, because the facts of 5,000 nodes take 100 MB.
func (s states) PutFacts(ctx context.Context, node string, _ model.Facts) error {
	return s.Store.PutFacts(ctx, node, s.machine.factsNow())
}

// State returns the stored state, with the clock of this machine.
func (s states) State(ctx context.Context, node string) (model.Node, error) {
	found, err := s.Store.State(ctx, node)
	found.Started, found.At = found.Started.Add(-s.machine.Skew), found.At.Add(-s.machine.Skew)

	return found, err
}
