package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// reconcileResource brings one resource into its desired state, or records why it did not. ctx is
// the context of the run, work the context of the current change.
func (r *run) reconcileResource(ctx, work context.Context, n *plan.Node) {
	r.Results[n.At].Started = true
	t := r.report.begin(n, r.IsNoop(n), r.ScopeOf(n).HealthCheckOnly)
	r.checkStop(ctx)
	d := r.decide(ctx, n)
	if d.Kind == plan.Fail && errors.Is(d.Err, resource.ErrUnsettled) {
		d = r.readAgain(ctx, n)
	}
	for ; d.Kind == plan.Wait; d = r.decide(ctx, n) {
		if d.For == plan.Creator {
			r.reconcileResource(ctx, work, d.Creator)
			r.observer.retry(n)
			continue
		}
		err := r.expand(ctx, n)
		if err == nil {
			return // it runs after the resources that it includes
		}
		r.observer.seen[n.At].Err = err
	}
	if ctx.Err() != nil && d.Kind != plan.Stable && d.Kind != plan.Skip && d.Kind != plan.CheckOnly {
		r.checkStop(ctx)
		d = plan.Decision{Kind: plan.Skip, NotRun: true, Reason: r.Stopped}
	}
	if d.Kind == plan.Change && !r.IsNoop(n) {
		if until := r.limit(n); !until.IsZero() {
			d = plan.Decision{Kind: plan.Skip, NotRun: true, Reason: "the limit of changes per minute defers it", RetryAt: until}
		}
	}
	switch d.Kind {
	case plan.Skip:
		t.NotRun, t.Skipped, t.SkipReason, t.UnmetRequirements, t.RetryAt = d.NotRun, !d.NotRun, d.Reason, d.Unmet, d.RetryAt
		r.Results[n.At].Unmet, r.Results[n.At].RetryAt = len(d.Unmet) > 0, d.RetryAt
	case plan.Fail:
		r.recorder.fail(ctx, n, t, d.Err)
	case plan.Unknown:
		t.Skipped, t.Noop, t.SkipReason, t.NoopMessage = true, true, d.Reason, d.Reason
		r.Expect(n, plan.Unsettled, d.Until)
	case plan.Stable:
		r.stable(work, n, d.Refresh)
	case plan.Change:
		if !r.IsNoop(n) {
			r.change(ctx, work, dueChange{node: n, t: t, plan: d.Plan, refresh: d.Refresh})
			return
		}
		r.predict(n, t, d)
	}
	r.conclude(ctx, n, t)
}

// conclude completes the transaction of a node, after the health checks if the node ran, and emits
// it.
func (r *run) conclude(ctx context.Context, n *plan.Node, t *model.Transaction) {
	interrupted, state := false, r.observer.state(n)
	if state != nil && !t.Skipped && !t.NotRun {
		t.FinalEnsure = state.State().Ensure
	}
	if r.checks.isMade(n) && !t.Failed && !t.Skipped && !t.NotRun {
		interrupted = r.check(ctx, n, t)
	}
	if p := r.observer.provider(n); p != nil {
		t.Provider = p.Name()
	}
	if !r.isSensitive(n) && (r.opts.Full || t.Outcome() != model.OutcomeStable) {
		t.Properties = r.secrets.document(encodeJSON(r.observer.spec(n)))
		if state != nil {
			t.Status = r.secrets.document(encodeJSON(state))
		}
	}
	if r.opts.RecordOwnState != nil && state != nil {
		r.opts.RecordOwnState(n.Ref, state)
	}
	r.End(n)
	r.report.complete(n, t)
	if r.recorder.defers(n, interrupted) {
		t = nil // finish emits it. The transactions after it do not wait for it.
	} else {
		r.recorder.register(n, t, interrupted)
	}
	r.report.emit(n, t)
}

// readAgain observes a node again that was in a transitional state, and decides on it.
func (r *run) readAgain(ctx context.Context, n *plan.Node) plan.Decision {
	looking, cancel := withTimeout(ctx, n)
	defer cancel()
	r.env.InTurn = true
	r.observer.Read(looking, []*plan.Node{n})
	r.env.InTurn = false

	return r.decide(ctx, n)
}

// limit counts a change, or returns the time until which a limit defers it. Resources that include
// others have no limit.
func (r *run) limit(n *plan.Node) (until time.Time) {
	if r.opts.Limit == nil || n.Resource.Type.Include != nil {
		return time.Time{}
	}

	return r.opts.Limit(n.Resource)
}

// decide decides on a node. It resolves properties, reads states and runs guards that the decision
// waits for. It returns a decision that waits for a manifest or for another node.
func (r *run) decide(ctx context.Context, n *plan.Node) plan.Decision {
	ctx, cancel := withTimeout(ctx, n)
	defer cancel()
	announced := n.Resource.Expand != nil
	for {
		d := plan.Decide(n, r.observer.of(n), r.Upstream)
		if d.Kind != plan.Skip && !announced {
			r.announcer.begin(ctx, n)
			announced = true
		}
		switch {
		case d.Kind != plan.Wait || d.For == plan.Creator || d.For == plan.Manifest:
			return d
		case d.For == plan.Properties:
			r.resolveDeferred(ctx, n)
		case d.For == plan.State:
			r.observer.refresh(ctx, n)
		case d.For == plan.Guards:
			r.observer.evalGuards(ctx, n)
		}
	}
}

func (r *run) resolveDeferred(ctx context.Context, n *plan.Node) {
	spec, secrets, err := n.Resource.ResolveDeferred(ctx, r.recorder.outputs)
	if err == nil {
		r.secrets.add(secrets...)
	}
	r.observer.seen[n.At].Spec, r.observer.seen[n.At].Err = spec, err
}

func (r *run) stable(ctx context.Context, n *plan.Node, refresh bool) {
	r.recorder.keepOutputs(n, resource.Outcome{})
	if r.IsNoop(n) {
		return
	}
	if refresh {
		r.refreshes.made(ctx, n)
	}
	if adopt := n.Resource.Type.Adopt; adopt != nil && !r.opts.Check {
		if err := adopt(ctx, r.Env(n), r.observer.spec(n), r.observer.state(n)); err != nil {
			r.opts.Env.Log.WarnContext(ctx, "resource not recorded", "resource", n.Ref.String(), "error", r.errorText(n, err))
		}
	}
}

// predict records what a real run would do.
func (r *run) predict(n *plan.Node, t *model.Transaction, d plan.Decision) {
	t.Changed, t.Noop, t.Refreshed = true, true, d.Refresh && !d.Plan.Unrefreshed
	t.NoopMessage = r.secrets.Redact(d.Plan.Message())
	if d.Until != nil {
		t.NoopMessage += ", if its guards allow it after " + d.Until.Ref.String() + " is applied"
	}
	if d.More != nil {
		t.NoopMessage += ", and possibly more after " + d.More.Ref.String() + " is applied"
	}
	if r.wouldReloadUnits(n, d.Plan) {
		t.NoopMessage += ", followed by a daemon-reload of systemd"
	}
	t.Changes = r.changes(n, d.Plan)
	for _, s := range n.Subscribers {
		if s.Resource.Type.Refreshes {
			t.WouldRefresh = append(t.WouldRefresh, s.Ref)
		}
	}
	r.Expect(n, plan.Planned, n)
	r.report.noteDrift(n, d.Plan, false)
}

// change changes a node, in a batch with the following nodes if the type supports it. It repeats the
// changes that failed in the batch one by one.
func (r *run) change(ctx, work context.Context, first dueChange) {
	batch, makeOne := r.batch(ctx, first), r.applier.one
	results := make([]*changeResult, len(batch))
	if len(batch) > 1 {
		for i, c := range batch[1:] {
			r.Results[c.node.At].Started = true
			batch[1+i].t = r.report.begin(c.node, false, false)
		}
		err := r.record(work, batch)
		if err == nil {
			results, err = r.applier.together(work, batch)
		}
		if err != nil {
			r.opts.Env.Log.WarnContext(ctx, "batch failed, retrying one by one", "type", first.node.Ref.Type, "resources", len(batch), "error", r.errorText(first.node, err))
		}
		makeOne = r.applier.alone
	}
	made := now()
	for i, c := range batch {
		// The time in which the batch processed other resources does not count.
		c.t.Timestamp = c.t.Timestamp.Add(now().Sub(made))
		var err error
		if results[i] == nil {
			if err = r.record(work, batch[i:i+1]); err == nil {
				result := makeOne(ctx, work, c)
				results[i] = &result
			}
		}
		if err != nil {
			r.recorder.fail(ctx, c.node, c.t, err)
		} else {
			r.recorder.changed(work, c, *results[i])
		}
		r.conclude(ctx, c.node, c.t)
	}
	r.refreshes.cancelPending(work)
}

// batch returns a change and the changes that can join it: changes of the following nodes with the
// same type and provider that wait for no other node. A change that is expected to fail has no
// batch.
func (r *run) batch(ctx context.Context, first dueChange) []dueChange {
	batch := []dueChange{first}
	most := batchSize(first.node.Resource.Type, r.Graph.Len())
	// With fail_on_error, no change may be made beside one that fails.
	if most == 1 || r.FailsFast(first.node) || first.plan.Fails != nil {
		return batch
	}
	for _, n := range r.Graph.Nodes()[first.node.At+1:] {
		if len(batch) == most || !r.Joins(n, first.node) || r.announcer.isDue(n) {
			break
		}
		if r.Results[n.At].Started {
			continue
		}
		d := r.decide(ctx, n)
		if d.Kind == plan.Change && d.Plan.Fails == nil && r.observer.provider(n) == r.observer.provider(first.node) {
			if !r.limit(n).IsZero() {
				break
			}
			batch = append(batch, dueChange{node: n, plan: d.Plan, refresh: d.Refresh})
		} else if d.Kind != plan.Stable && d.Kind != plan.Change {
			break
		}
	}

	return batch
}

// record stores, before the changes, the refreshes and the daemon-reload that they cause.
func (r *run) record(ctx context.Context, batch []dueChange) error {
	for _, c := range batch {
		c.t.Changes = r.changes(c.node, c.plan)
	}
	if slices.ContainsFunc(batch, func(c dueChange) bool { return r.wouldReloadUnits(c.node, c.plan) }) {
		if err := r.opts.Env.Host.ExpectUnitChange(ctx, r.opts.RunID); err != nil {
			return err
		}
	}

	return r.refreshes.notify(ctx, nodesOf(batch)...)
}
