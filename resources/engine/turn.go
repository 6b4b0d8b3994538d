package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// turn brings one resource into its desired state, or says why not. The order
// of things stands here once, for every type: gate, look, probe, plan, apply,
// look, verify. looking is ctx that ends already when the run is stopped.
func (r *run) turn(ctx, looking context.Context, n *node) {
	t := r.begin(n)
	if r.gate(ctx, n, t) {
		return
	}
	if n.res.Expand == nil {
		r.announce(ctx, n)
	}
	if t.HealthCheckOnly && n.res.Type.Include == nil {
		r.conclude(ctx, n, t)
		return
	}
	var plan resource.Plan
	var refresh bool
	var err error
	if n.res.Expand != nil {
		if err = r.expand(looking, n); err == nil {
			return // its turn comes after those of what it includes
		}
	} else {
		plan, refresh, err = r.due(looking, n)
	}
	for maker := r.maker(err); maker != nil; maker = r.maker(err) {
		r.turn(ctx, looking, maker)
		plan, refresh, err = r.due(looking, n)
	}
	switch {
	case looking.Err() != nil && (err != nil || !plan.Empty()):
		r.checkStop(ctx)
		t.NotRun, t.SkipReason = true, r.stopped
		r.end(n, t)
		return
	case err != nil && r.isNoop(n) && r.unjudged(n, err, plan, refresh, t):
	case err != nil:
		r.fail(ctx, n, t, err)
	case plan.Empty():
		r.stable(ctx, n, t, refresh)
	case r.isNoop(n):
		r.would(n, t, plan, refresh)
	default:
		if batch := r.batch(looking, n, plan, refresh); len(batch) > 1 {
			r.applyBatch(ctx, batch, t)
			return
		}
		r.change(ctx, n, t, plan, refresh)
		r.forgive(ctx)
	}
	r.conclude(ctx, n, t)
}

// gate ends the turn of a resource that does not get one.
func (r *run) gate(ctx context.Context, n *node, t *model.Transaction) bool {
	res := &r.results[n.at]
	r.checkStop(ctx)
	switch {
	case r.stopped != "":
		t.NotRun, t.SkipReason = true, r.stopped
	case r.haltedBy(n) != "":
		t.NotRun, t.SkipReason = true, r.haltedBy(n)
	case n.res.Excluded != "":
		t.Skipped, t.SkipReason = true, n.res.Excluded
	case r.ignoresDrift(n):
		t.Skipped, t.SkipReason = true, "drift is ignored"
	default:
		t.UnmetRequirements = r.unmet(n)
		if len(t.UnmetRequirements) == 0 {
			return false
		}
		t.Skipped, t.SkipReason, res.unmet = true, "requirements are not met", true
	}
	r.end(n, t)

	return true
}

// errStopped is why what is in hand is broken off.
var errStopped = errors.New("the run was interrupted")

// untilStopped gives a context for what changes nothing: it ends when the run is
// to stop, and not only when the change in hand is to be broken off.
func (r *run) untilStopped(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-r.opts.Stop:
			cancel(errStopped)
		case <-ctx.Done():
		}
	}()

	return ctx, cancel
}

// checkStop notices that the rest of the run is not wanted any more.
func (r *run) checkStop(ctx context.Context) {
	if r.stopped != "" {
		return
	}
	select {
	case <-r.opts.Stop:
		r.stopped = errStopped.Error()
	case <-ctx.Done():
		r.stopped = fmt.Sprintf("the run was broken off: %v", context.Cause(ctx))
	default:
	}
}

// unmet gives the requirements that failed, or were themselves skipped for that.
func (r *run) unmet(n *node) []model.Ref {
	var out []model.Ref
	if r.scope(n).HealthCheckOnly {
		return nil // nothing is changed, and all there is to know is asked for
	}
	for _, dep := range n.requires {
		if res := r.results[dep.at]; res.failed || res.unmet {
			out = append(out, dep.ref)
		}
	}
	for _, ref := range n.earlierRequires {
		if r.opts.Earlier.failed(ref, r.isNoop(n)) || (r.neverCame(ref) && r.unread(n) == nil) {
			out = append(out, ref)
		}
	}

	return out
}

// refreshed says that a resource it subscribes to changed, in this run or in
// one that did not come to the refresh.
func (r *run) refreshed(n *node) bool {
	if !n.res.Type.Refreshes {
		return false
	}
	for _, dep := range n.subscribes {
		res := r.results[dep.at]
		if res.changed || (res.would && !res.unknown && r.follows(n, dep)) {
			return true
		}
	}
	for _, ref := range n.earlierSubscribes {
		if r.opts.Earlier.refreshes(ref, n.ref, r.isNoop(n)) {
			return true
		}
	}
	if slices.Contains(r.opts.Refresh, n.ref) {
		return true
	}
	// A debt is paid once something it may stem from is as it should be: while
	// all of it fails, acting would repeat at every run.
	return r.owed[n.ref] && !r.halfway(n) && slices.ContainsFunc(n.subscribes, func(dep *node) bool {
		return !r.results[dep.at].failed && !r.results[dep.at].unmet
	})
}

// due finds out what is to be done to a resource at its turn.
func (r *run) due(ctx context.Context, n *node) (plan resource.Plan, refresh bool, err error) {
	ctx, cancel := r.attempt(ctx, n)
	defer cancel()
	if until := r.unread(n); until != nil {
		return plan, false, unknownError{until: until}
	}
	if err := r.resolveLate(ctx, n); err != nil {
		return plan, false, err
	}
	r.refreshLook(ctx, n)
	l := &r.looks[n.at]
	if l.err != nil {
		return plan, false, l.err
	}
	refresh = r.refreshed(n)
	state := l.state
	// What guards say before something else is applied may not be what they say then.
	var until *node
	if n.res.Type.Probe != nil && n.res.Type.Asks(l.spec, state, refresh) {
		if r.isNoop(n) {
			until = r.pendingBefore(n)
		}
		err := protect(func() (err error) {
			state, err = n.res.Type.Probe(ctx, r.env(n), l.provider, l.spec, state)
			return err
		})
		switch {
		case err != nil && until != nil:
			return plan, refresh, unknownError{until: until}
		case err != nil:
			return plan, refresh, err
		}
		l.state, l.asked = state, state
	}
	err = protect(func() (err error) {
		plan, err = n.res.Type.Plan(l.spec, state, refresh)
		return err
	})
	switch {
	case err != nil:
	case plan.Empty() && until != nil:
		err = unknownError{until: until}
	case plan.Empty() && !refresh && (r.mayRefresh(n) || r.mayChange(n)):
		err = unknownError{until: r.pendingBefore(n)}
	case !refresh && r.isNoop(n):
		if other := r.overtaken(n, plan.Empty()); other != nil {
			err = unknownError{until: other}
		}
	}
	r.results[n.at].provided = until

	return plan, refresh, err
}

// mayRefresh says that in noop it is not known whether n would be refreshed.
func (r *run) mayRefresh(n *node) bool {
	return n.res.Type.Refreshes && slices.ContainsFunc(n.subscribes, func(dep *node) bool { return r.results[dep.at].unknown && r.follows(n, dep) })
}

// mayChange says that in noop it is not known whether the manifest that n
// includes would change anything.
func (r *run) mayChange(n *node) bool {
	return r.isNoop(n) && slices.ContainsFunc(n.children, func(child *node) bool { return r.results[child.at].unknown })
}

// resolveLate completes the properties of a resource that had to wait for its turn.
func (r *run) resolveLate(ctx context.Context, n *node) error {
	l := &r.looks[n.at]
	if n.res.Late == nil {
		l.spec = n.res.Spec
		return nil
	}
	if until := r.taken(n); until != nil && r.isNoop(n) {
		return unknownError{until: until, late: n.res.Waiting}
	}
	spec, secrets, err := n.res.Late(ctx, r.outputs)
	if err != nil {
		return err
	}
	r.addSecrets(secrets...)
	l.spec = spec

	return nil
}

// refreshLook looks again when something changed what the last look described:
// as a group where the type asks many with one question, else at this one.
func (r *run) refreshLook(ctx context.Context, n *node) {
	if r.eras.fresh(&r.looks[n.at], n.res.Type.Reads) {
		return
	}
	nodes := []*node{n}
	if n.res.Type.StatusAll != nil {
		for _, other := range r.graph.nodes[n.at+1:] {
			if other.res.Type == n.res.Type && r.looks[other.at].taken && !r.results[other.at].done {
				nodes = append(nodes, other)
			}
		}
	}
	r.lookAt(ctx, nodes)
	if ctx.Err() == nil {
		return
	}
	// That the time of n is used up says nothing of the others.
	for _, other := range nodes[1:] {
		r.looks[other.at].at = -1
	}
}

// attempt bounds ctx by the resource's timeout.
func (r *run) attempt(ctx context.Context, n *node) (context.Context, context.CancelFunc) {
	timeout := n.res.Meta().Timeout.Std()
	if timeout == 0 || n.res.Type.OwnTimeout {
		return ctx, func() {}
	}

	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timed out after %s", timeout))
}

func (r *run) stable(ctx context.Context, n *node, t *model.Transaction, refresh bool) {
	r.describe(n, t)
	r.keepOutputs(n, resource.Outcome{})
	if refresh && !r.isNoop(n) {
		r.settle(ctx, n)
	}
}

// would says what a real run would do.
func (r *run) would(n *node, t *model.Transaction, plan resource.Plan, refresh bool) {
	t.Changed, t.Noop, t.Refreshed = true, true, refresh && !plan.Unrefreshed
	t.NoopMessage = r.redact.Redact(plan.Message())
	if until := r.results[n.at].provided; until != nil {
		t.NoopMessage += ", provided that its guards let it once " + until.ref.String() + " is applied"
	}
	t.Changes = r.showChanges(n, plan)
	r.describe(n, t)
	r.expect(n, n)
	for _, s := range n.subscribers {
		if s.res.Type.Refreshes {
			t.WouldRefresh = append(t.WouldRefresh, s.ref)
		}
	}
	r.noteDrift(n, false)
}

// fail records an error of a resource.
func (r *run) fail(ctx context.Context, n *node, t *model.Transaction, err error) {
	t.Failed = true
	t.Errors = append(t.Errors, r.words(n, err))
	t.Noop = r.isNoop(n)
	var p *panicError
	if errors.As(err, &p) {
		r.opts.Env.Log.ErrorContext(ctx, "a resource type panicked", "resource", n.ref.String(), "panic", r.redact.Redact(fmt.Sprint(p.Value)), "stack", string(p.Stack))
	}
	r.results[n.at].failed = true
	r.describe(n, t)
	r.halt(n)
}

// wait sleeps between attempts; false means that the run ended meanwhile.
func (r *run) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-r.opts.Stop:
		return false
	case <-ctx.Done():
		return false
	}
}
