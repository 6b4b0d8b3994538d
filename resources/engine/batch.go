package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// batchRounds is how many changes each of the parallel workers makes in a batch.
const batchRounds = 4

// member is the change that is due to one resource of a batch.
type member struct {
	n       *node
	t       *model.Transaction
	plan    resource.Plan
	refresh bool
	// together is when they had been changed together.
	together time.Time
}

// batch gives the changes that can be made in one transaction with that of n:
// those of the resources of its type and provider that follow it directly and
// wait for nothing that is still to come.
func (r *run) batch(ctx context.Context, n *node, plan resource.Plan, refresh bool) []*member {
	typ := n.res.Type
	// With fail_on_error nothing may be changed beside what fails.
	if typ.Probe != nil || (typ.ApplyAll == nil && typ.Parallel < 2) || r.stopsAtFailure(n) {
		return nil
	}
	most := len(r.graph.nodes)
	if typ.ApplyAll == nil {
		// Whoever stops the run waits for the batch in hand, so it must not be long.
		most = batchRounds * typ.Parallel
	}
	first := &member{n: n, plan: plan, refresh: refresh}
	members := []*member{first}
	for _, next := range r.graph.nodes[n.at+1:] {
		if len(members) >= most || !r.joins(next, n) {
			break
		}
		if r.results[next.at].begun {
			continue
		}
		plan, refresh, err := r.due(ctx, next)
		if err != nil {
			break
		}
		if !plan.Empty() && r.looks[next.at].provider == r.looks[n.at].provider {
			members = append(members, &member{n: next, plan: plan, refresh: refresh})
		}
	}

	return members
}

// joins says that a resource may be changed together with first.
func (r *run) joins(n, first *node) bool {
	if n.res.Type != first.res.Type || n.res.Excluded != "" || n.res.Late != nil || r.isNoop(n) || r.ignoresDrift(n) || len(r.unmet(n)) > 0 {
		return false
	}
	if r.begins(n) || r.stopsAtFailure(n) || r.haltedBy(n) != "" || r.scope(n).HealthCheckOnly {
		return false
	}
	for _, dep := range n.before {
		if !r.results[dep.at].done {
			return false
		}
	}

	// A transaction has one timeout: that of each resource in it.
	return n.res.Type.ApplyAll == nil || n.res.Meta().Timeout == first.res.Meta().Timeout
}

// applyBatch makes the changes together, and one by one those that did not
// come out as planned.
func (r *run) applyBatch(ctx context.Context, members []*member, first *model.Transaction) {
	members[0].t = first
	for _, m := range members[1:] {
		m.t = r.begin(m.n)
	}
	var outcomes []resource.Outcome
	var errs []error
	err := r.oweAll(ctx, members)
	if err == nil {
		outcomes, errs, err = r.applyTogether(ctx, members)
	}
	together := now()
	for _, m := range members {
		m.together = together
	}
	if err != nil {
		r.opts.Env.Log.WarnContext(ctx, "changing them together failed, going on one by one", "type", members[0].n.ref.Type, "resources", len(members), "error", r.words(members[0].n, err))
	} else {
		r.endTogether(ctx, members, outcomes, errs)
	}
	for _, m := range members {
		if !r.results[m.n.at].done {
			m.resume()
			r.applyAlone(ctx, m)
		}
	}
	r.forgive(ctx)
}

// endTogether ends the turns of the members that came out as planned, and of
// those that have no time left to be tried alone.
func (r *run) endTogether(ctx context.Context, members []*member, outcomes []resource.Outcome, errs []error) {
	for i, m := range members {
		var timedOut resource.TimedOut
		switch {
		case errs[i] == nil && r.looks[m.n.at].err == nil && r.verify(m.n, outcomes[i]) == nil:
			m.resume()
			r.succeed(ctx, m.n, m.t, m.plan, outcomes[i], m.refresh)
		case errors.As(errs[i], &timedOut) && m.n.res.Meta().Retry == 0:
			m.resume()
			r.failChange(ctx, m.n, m.t, m.plan, m.refresh, errs[i])
		default:
			continue
		}
		r.conclude(ctx, m.n, m.t)
	}
}

// resume takes from a member's time that for which others of its batch had
// their turns since all of them were changed together.
func (m *member) resume() { m.t.Timestamp = m.t.Timestamp.Add(now().Sub(m.together)) }

func (r *run) oweAll(ctx context.Context, members []*member) error {
	for _, m := range members {
		if err := r.owe(ctx, m.n); err != nil {
			return err
		}
		m.t.Changes = r.showChanges(m.n, m.plan)
	}

	return nil
}

// applyTogether makes the changes and looks at what came of them. Its last error
// is about all of them.
func (r *run) applyTogether(ctx context.Context, members []*member) ([]resource.Outcome, []error, error) {
	typ := members[0].n.res.Type
	g := &group{typ: typ, provider: r.looks[members[0].n.at].provider}
	for _, m := range members {
		g.nodes = append(g.nodes, m.n)
	}
	apply := r.applyAll
	if typ.ApplyAll == nil {
		apply = r.applyParallel
	}
	outcomes, errs, err := apply(ctx, g, members)
	r.touched(members[0].n)
	r.lookAt(ctx, g.nodes)

	return outcomes, errs, err
}

// applyAll makes the changes in one transaction of the type.
func (r *run) applyAll(ctx context.Context, g *group, members []*member) (outcomes []resource.Outcome, errs []error, err error) {
	plans := make([]resource.Plan, len(members))
	for i, m := range members {
		plans[i] = m.plan
	}
	ctx, cancel := r.attempt(ctx, members[0].n)
	defer cancel()
	err = protect(func() (err error) {
		outcomes, err = g.typ.ApplyAll(ctx, r.env(nil), g.provider, r.specs(g), plans)
		if err == nil && len(outcomes) != len(members) {
			err = fmt.Errorf("%s gave %d outcomes for %d changes", g.typ.Name, len(outcomes), len(members))
		}
		return err
	})
	var partly resource.Partly
	if errors.As(err, &partly) && len(partly) == len(members) && len(outcomes) == len(members) {
		return outcomes, partly, nil
	}

	return outcomes, make([]error, len(members)), err
}

// applyParallel makes the changes at the same time, as many as the type allows.
func (r *run) applyParallel(ctx context.Context, g *group, members []*member) ([]resource.Outcome, []error, error) {
	outcomes, errs := make([]resource.Outcome, len(members)), make([]error, len(members))
	parallel(len(members), g.typ.Parallel, func(i int) {
		m := members[i]
		ctx, cancel := r.attempt(ctx, m.n)
		defer cancel()
		errs[i] = protect(func() (err error) {
			l := &r.looks[m.n.at]
			outcomes[i], err = g.typ.Apply(ctx, r.env(m.n), l.provider, l.spec, m.plan)
			return err
		})
	})

	return outcomes, errs, nil
}

// applyAlone changes a member by itself, after the batch did not do it.
func (r *run) applyAlone(ctx context.Context, m *member) {
	plan, err := r.planAgain(ctx, m.n, m.refresh)
	switch {
	case err != nil:
		r.failChange(ctx, m.n, m.t, m.plan, m.refresh, err)
	case plan.Empty():
		// The transaction failed as a whole, but this part of it was done.
		r.succeed(ctx, m.n, m.t, m.plan, resource.Outcome{}, m.refresh)
	default:
		r.change(ctx, m.n, m.t, plan, m.refresh)
	}
	r.conclude(ctx, m.n, m.t)
}
