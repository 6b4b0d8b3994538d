package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// Run is what an Applier needs to know of the run it is part of.
type applierRun interface {
	// Env returns what a type is handed for a node, or for many when n is nil.
	Env(n *graph.Node) resource.Env
	// Plan returns what is due to a node in a state.
	Plan(n *graph.Node, spec resource.Spec, state resource.State, refresh bool) (resource.Plan, error)
	// ErrorText returns an error of a node as it may be shown.
	ErrorText(n *graph.Node, err error) string
}

// Applier makes the changes of a run. It is used by one goroutine.
type applier struct {
	Run      applierRun
	Observer *observer
	Log      *slog.Logger
}

// Change is a change that is due to a node.
type dueChange struct {
	Node    *graph.Node
	Plan    resource.Plan
	Refresh bool
}

// Result is what came of a change.
type changeResult struct {
	Outcome resource.Outcome
	// Err is why the node is not in its desired state. Touched means that it was
	// changed all the same, or may be.
	Err     error
	Touched bool
	// Made is when the change was made, before it was verified; zero where none was.
	Made time.Time
}

// afterFailure bounds the observation of what a failed change left: the
// resource's own time may be used up by then.
const afterFailure = 30 * time.Second

// One applies a change until it succeeds or the resource's attempts are used up.
// The refresh is kept from attempt to attempt. No attempt begins once stop has
// ended; ctx bounds the one in hand.
func (a *applier) One(stop, ctx context.Context, c dueChange) changeResult {
	meta := c.Node.Resource.Meta()
	touched := false
	for attempt := 0; ; attempt++ {
		outcome, made, err := a.once(ctx, c)
		touched = touched || err == nil || !outcome.Untouched
		if err == nil {
			return changeResult{Outcome: outcome, Touched: touched, Made: made}
		}
		if attempt >= meta.Retry || !waitForRetry(stop, meta.Delay.Std()) {
			return a.result(ctx, c, outcome, err, touched)
		}
		a.Log.InfoContext(ctx, "retrying", "resource", c.Node.Ref.String(), "attempt", attempt+2, "error", a.Run.ErrorText(c.Node, err))
		again, err := a.again(ctx, c)
		if err != nil || again.Plan.Empty() {
			return a.result(ctx, c, outcome, err, touched)
		}
		c.Plan = again.Plan
	}
}

// result returns what came of a change, after observing what a failed one left.
func (a *applier) result(ctx context.Context, c dueChange, outcome resource.Outcome, err error, touched bool) changeResult {
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, afterFailure)
		defer cancel()
		a.Observer.Refresh(ctx, c.Node)
	}

	return changeResult{Outcome: outcome, Err: err, Touched: touched}
}

// again observes a node once more and plans without asking its guards, which are
// asked once a run.
func (a *applier) again(ctx context.Context, c dueChange) (dueChange, error) {
	a.Observer.Refresh(ctx, c.Node)
	state, err := a.Observer.Planned(c.Node)
	if err == nil {
		c.Plan, err = a.Run.Plan(c.Node, a.Observer.Spec(c.Node), state, c.Refresh)
	}

	return c, err
}

// once applies a change, observes what came of it and verifies that. made is when it was
// applied.
func (a *applier) once(ctx context.Context, c dueChange) (outcome resource.Outcome, made time.Time, err error) {
	ctx, cancel := withTimeout(ctx, c.Node)
	defer cancel()
	outcome, err = a.apply(ctx, c)
	made = time.Now()
	a.touched(c.Node)
	if err != nil {
		return outcome, made, err
	}
	a.Observer.Invalidate(c.Node)
	a.Observer.Refresh(ctx, c.Node)
	outcome.Untouched = false

	return outcome, made, a.verify(c.Node, outcome)
}

func (a *applier) apply(ctx context.Context, c dueChange) (outcome resource.Outcome, err error) {
	typ := c.Node.Resource.Type
	err = plan.Protect(func() (err error) {
		outcome, err = typ.Apply(ctx, a.Run.Env(c.Node), a.Observer.Provider(c.Node), a.Observer.Spec(c.Node), c.Plan)
		return err
	})

	return outcome, err
}

// touched makes what a change of n may have changed invalid.
func (a *applier) touched(n *graph.Node) {
	writes := n.Resource.Type.Writes
	a.Observer.Changed(writes)
	if h := a.Run.Env(nil).Host; writes.Overlaps(resource.Accounts) && h != nil {
		h.ForgetAccounts()
	}
}

// verify judges the state after a change.
func (a *applier) verify(n *graph.Node, outcome resource.Outcome) error {
	seen := a.Observer.Of(n)
	err := seen.Err
	if err == nil {
		err = plan.Protect(func() error { return n.Resource.Type.Verify(seen.Spec, outcome, seen.State) })
	}
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrDesiredStateFailed, err)
	}

	return nil
}

// Attempt bounds ctx by the timeout of a resource.
func withTimeout(ctx context.Context, n *graph.Node) (context.Context, context.CancelFunc) {
	timeout := n.Resource.Meta().Timeout.Std()
	if timeout == 0 || n.Resource.Type.OwnTimeout {
		return ctx, func() {}
	}

	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s (raise its timeout if it needs longer)", timeout))
}

// wait waits between attempts, and reports whether another one may begin.
func waitForRetry(stop context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return stop.Err() == nil
	case <-stop.Done():
		return false
	}
}
