package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// batchRounds is how many changes each of the parallel workers makes in a batch.
const batchRounds = 4

// BatchSize returns how many of count changes of a type are made together at
// most; 1 means that it makes one at a time.
func batchSize(typ *resource.Type, count int) int {
	switch {
	case typ.EvalGuards != nil:
		return 1
	case typ.ApplyAll != nil:
		return count
	case typ.Parallel < 2:
		return 1
	default:
		// Whoever stops the run waits for the batch in hand, so it must not be long.
		return batchRounds * typ.Parallel
	}
}

// Together makes changes of one type and provider at once. The result of a change
// that must be made again alone is nil. The error is about all of them.
func (a *applier) Together(ctx context.Context, changes []dueChange) ([]*changeResult, error) {
	typ := changes[0].Node.Resource.Type
	apply := a.inTransaction
	if typ.ApplyAll == nil {
		apply = a.inParallel
	}
	outcomes, errs, err := apply(ctx, changes)
	made := time.Now()
	a.touched(changes[0].Node)
	a.Observer.Read(ctx, nodesOf(changes))
	results := make([]*changeResult, len(changes))
	if err != nil {
		return results, err
	}
	for i, c := range changes {
		isFinal := errors.As(errs[i], new(resource.TimedOut)) || errors.As(errs[i], new(resource.Concluded))
		switch {
		case errs[i] == nil && a.verify(c.Node, outcomes[i]) == nil:
			results[i] = &changeResult{Outcome: outcomes[i], Touched: true, Made: made}
		case isFinal && c.Node.Resource.Meta().Retry == 0:
			r := a.result(ctx, c, outcomes[i], errs[i], !outcomes[i].Untouched)
			results[i] = &r
		}
	}

	return results, nil
}

// Alone makes a change that did not succeed together with others. What they did
// of it counts.
func (a *applier) Alone(stop, ctx context.Context, c dueChange) changeResult {
	again, err := a.again(ctx, c)
	switch {
	case err != nil:
		return a.result(ctx, c, resource.Outcome{}, err, true)
	case again.Plan.Empty():
		return changeResult{Touched: true}
	default:
		return a.One(stop, ctx, again)
	}
}

// inTransaction makes the changes in one transaction of the type.
func (a *applier) inTransaction(ctx context.Context, changes []dueChange) (outcomes []resource.Outcome, errs []error, err error) {
	first := changes[0].Node
	plans := make([]resource.Plan, len(changes))
	for i, c := range changes {
		plans[i] = c.Plan
	}
	ctx, cancel := withTimeout(ctx, first)
	defer cancel()
	typ := first.Resource.Type
	err = plan.Protect(func() (err error) {
		outcomes, err = typ.ApplyAll(ctx, a.Run.Env(nil), a.Observer.Provider(first), a.Observer.Specs(nodesOf(changes)), plans)
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

// inParallel makes the changes at the same time, as many as the type allows.
func (a *applier) inParallel(ctx context.Context, changes []dueChange) ([]resource.Outcome, []error, error) {
	outcomes, errs := make([]resource.Outcome, len(changes)), make([]error, len(changes))
	parallel(len(changes), changes[0].Node.Resource.Type.Parallel, func(i int) {
		ctx, cancel := withTimeout(ctx, changes[i].Node)
		defer cancel()
		outcomes[i], errs[i] = a.apply(ctx, changes[i])
	})

	return outcomes, errs, nil
}

func nodesOf(changes []dueChange) []*graph.Node {
	nodes := make([]*graph.Node, len(changes))
	for i, c := range changes {
		nodes[i] = c.Node
	}

	return nodes
}
