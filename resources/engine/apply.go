package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// applier makes the changes of a run. One goroutine uses it.
type applier struct{ *access }

type dueChange struct {
	node    *plan.Node
	t       *model.Transaction
	plan    resource.Plan
	refresh bool
}

type changeResult struct {
	outcome resource.Outcome
	// err is set if the node is not in its desired state. touched reports that the node changed or
	// may have changed, also after an error.
	err     error
	touched bool
	// made is the time of the change, before its verification. It is zero if no change was made.
	made time.Time
}

// afterFailure limits the observation after a failed change. The timeout of the resource may be
// used up then.
const afterFailure = 30 * time.Second

// one applies a change, observes the node and verifies it, and retries as often as the resource
// allows. A retry still makes the refresh. One starts no attempt after stop has ended; ctx limits
// the current attempt.
func (a *applier) one(stop, ctx context.Context, c dueChange) changeResult {
	meta := c.node.Resource.Meta()
	touched := false
	for attempt := 0; ; attempt++ {
		working, cancel := withTimeout(ctx, c.node)
		outcome, err := a.apply(working, c)
		made := time.Now()
		a.touched(c.node)
		if err == nil {
			outcome.Untouched = false
			a.observer.seen[c.node.At].taken = false
			a.observer.refresh(working, c.node)
			err = a.verify(c.node, outcome)
		}
		cancel()
		touched = touched || !outcome.Untouched
		if err == nil {
			return changeResult{outcome: outcome, touched: touched, made: made}
		}
		if attempt >= meta.Retry || !waitForRetry(stop, meta.Delay.Std()) {
			return a.result(ctx, c, outcome, err, touched)
		}
		a.env.Log.InfoContext(ctx, "retrying", "resource", c.node.Ref.String(), "attempt", attempt+2, "error", a.errorText(c.node, err))
		again, err := a.again(ctx, c)
		if err != nil || again.plan.Empty() {
			return a.result(ctx, c, outcome, err, touched)
		}
		c.plan = again.plan
	}
}

// result returns the result of a change. It observes the node again after an error.
func (a *applier) result(ctx context.Context, c dueChange, outcome resource.Outcome, err error, touched bool) changeResult {
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, afterFailure)
		defer cancel()
		a.observer.refresh(ctx, c.node)
	}

	return changeResult{outcome: outcome, err: err, touched: touched}
}

// again observes a node and plans again. It does not run the guards again, because they run once
// per run.
func (a *applier) again(ctx context.Context, c dueChange) (dueChange, error) {
	a.observer.refresh(ctx, c.node)
	state, err := a.observer.planned(c.node)
	if err == nil {
		c.plan, err = a.Plan(c.node, a.observer.spec(c.node), state, c.refresh)
	}

	return c, err
}

func (a *applier) apply(ctx context.Context, c dueChange) (outcome resource.Outcome, err error) {
	typ := c.node.Resource.Type
	err = plan.Protect(func() (err error) {
		outcome, err = typ.Apply(ctx, a.Env(c.node), a.observer.provider(c.node), a.observer.spec(c.node), c.plan)
		return err
	})

	return outcome, err
}

// touched invalidates the observations that a change of n may have changed.
func (a *applier) touched(n *plan.Node) {
	writes := n.Resource.Type.Writes
	a.observer.changed(writes)
	if h := a.Env(nil).Host; writes.Overlaps(resource.Accounts) && h != nil {
		h.ForgetAccounts()
	}
}

func (a *applier) verify(n *plan.Node, outcome resource.Outcome) error {
	seen := a.observer.of(n)
	err := seen.Err
	if err == nil {
		err = plan.Protect(func() error { return n.Resource.Type.Verify(seen.Spec, outcome, seen.State) })
	}
	if err != nil {
		return fmt.Errorf("%w: %w", model.ErrDesiredStateFailed, err)
	}

	return nil
}

func withTimeout(ctx context.Context, n *plan.Node) (context.Context, context.CancelFunc) {
	timeout := n.Resource.Meta().Timeout.Std()
	if timeout == 0 || n.Resource.Type.OwnTimeout {
		return ctx, func() {}
	}

	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s (raise its timeout if it needs longer)", timeout))
}

// waitForRetry waits for the delay and reports whether another attempt may start.
func waitForRetry(stop context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return stop.Err() == nil
	case <-stop.Done():
		return false
	}
}

// batchRounds is the number of changes that each parallel worker makes in a batch.
const batchRounds = 4

// batchSize returns the maximum number of changes of a type in one batch; 1 means no batches. count
// is the number of resources.
func batchSize(typ *resource.Type, count int) int {
	switch {
	case typ.EvalGuards != nil:
		return 1
	case typ.ApplyAll != nil:
		return count
	case typ.Parallel < 2:
		return 1
	default:
		// A batch must be short, because stopping a run waits for the current batch.
		return batchRounds * typ.Parallel
	}
}

// together makes changes of one type and provider in one batch. A nil result means that the change
// must be made again alone. The error applies to the whole batch.
func (a *applier) together(ctx context.Context, changes []dueChange) ([]*changeResult, error) {
	typ := changes[0].node.Resource.Type
	apply := a.inTransaction
	if typ.ApplyAll == nil {
		apply = a.inParallel
	}
	outcomes, errs, err := apply(ctx, changes)
	made := time.Now()
	a.touched(changes[0].node)
	a.observer.Read(ctx, nodesOf(changes))
	results := make([]*changeResult, len(changes))
	if err != nil {
		return results, err
	}
	for i, c := range changes {
		isFinal := errors.As(errs[i], new(resource.Concluded))
		switch {
		case errs[i] == nil && a.verify(c.node, outcomes[i]) == nil:
			results[i] = &changeResult{outcome: outcomes[i], touched: true, made: made}
		case isFinal && c.node.Resource.Meta().Retry == 0:
			r := a.result(ctx, c, outcomes[i], errs[i], !outcomes[i].Untouched)
			results[i] = &r
		}
	}

	return results, nil
}

// alone makes a change that failed in a batch. It observes first, because the batch may have made
// part of the change.
func (a *applier) alone(stop, ctx context.Context, c dueChange) changeResult {
	again, err := a.again(ctx, c)
	switch {
	case err != nil:
		return a.result(ctx, c, resource.Outcome{}, err, true)
	case again.plan.Empty():
		return changeResult{touched: true}
	default:
		return a.one(stop, ctx, again)
	}
}

func (a *applier) inTransaction(ctx context.Context, changes []dueChange) (outcomes []resource.Outcome, errs []error, err error) {
	first := changes[0].node
	plans := make([]resource.Plan, len(changes))
	for i, c := range changes {
		plans[i] = c.plan
	}
	ctx, cancel := withTimeout(ctx, first)
	defer cancel()
	typ := first.Resource.Type
	err = plan.Protect(func() (err error) {
		outcomes, err = typ.ApplyAll(ctx, a.Env(nil), a.observer.provider(first), a.observer.specs(nodesOf(changes)), plans)
		if err == nil && len(outcomes) != len(changes) {
			err = fmt.Errorf("%s returned %d outcomes for %d changes", typ.Name, len(outcomes), len(changes))
		}
		return err
	})
	var failed resource.BatchError
	if errors.As(err, &failed) && len(failed) == len(changes) && len(outcomes) == len(changes) {
		return outcomes, failed, nil
	}

	return outcomes, make([]error, len(changes)), err
}

func (a *applier) inParallel(ctx context.Context, changes []dueChange) ([]resource.Outcome, []error, error) {
	outcomes, errs := make([]resource.Outcome, len(changes)), make([]error, len(changes))
	parallel(len(changes), changes[0].node.Resource.Type.Parallel, func(i int) {
		ctx, cancel := withTimeout(ctx, changes[i].node)
		defer cancel()
		outcomes[i], errs[i] = a.apply(ctx, changes[i])
	})

	return outcomes, errs, nil
}

func nodesOf(changes []dueChange) []*plan.Node {
	nodes := make([]*plan.Node, len(changes))
	for i, c := range changes {
		nodes[i] = c.node
	}

	return nodes
}
