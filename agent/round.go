package agent

import (
	"context"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/agent/registrar"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/reconcile"
	"github.com/musterfleet/muster/resources/resource"
)

// round is the making of a unit's health checks between its runs. It goes on
// beside runs and requests, and touches nothing that is the runner's: what it
// found is taken over at its end.
type round struct {
	unit *unit
	// graph is what it was begun for.
	graph  *graph.Graph
	cancel context.CancelFunc
	// changes is how often something had changed the machine when it was begun.
	changes int
	// made says that it came to its end, with these transactions.
	made         bool
	transactions []*model.Transaction
	// fell are the resources that do not register any more.
	fell []model.Ref
}

// untilRound gives how long after health checks they are made again.
func (r *runner) untilRound() time.Duration {
	return time.Duration(r.pace * float64(r.Config().HealthInterval.Std()))
}

// roundAt gives when a round of a unit is to begin, zero for never.
func (r *runner) roundAt(u *unit) time.Time {
	if r.Config().HealthInterval == 0 || !u.current.isMonitored() || u.health.round != nil {
		return time.Time{}
	}

	return u.health.next
}

// beginRounds begins those that are due; false means that none is.
func (r *runner) beginRounds(ctx, hard context.Context, now time.Time) bool {
	began := false
	for _, u := range r.order {
		if at := r.roundAt(u); !at.IsZero() && !now.Before(at) {
			r.beginRound(ctx, hard, u)
			began = true
		}
	}

	return began
}

func (r *runner) beginRound(ctx, hard context.Context, u *unit) {
	ctx, cancel := context.WithCancel(ctx)
	b := &round{unit: u, graph: u.current.graph, cancel: cancel, changes: r.changes}
	u.health.round = b
	o := r.options(ctx, hard, u, wake{model.CauseHealth, time.Now()}, ksuid.New().String())
	o.Env.Scope.HealthCheckOnly = true
	o.OnTransaction = func(t *model.Transaction) { b.transactions = append(b.transactions, t) }
	o.Register = func(ref model.Ref, _ []model.RegisterEntry) { b.fell = append(b.fell, ref) }
	taken := r.claimsBut(u)
	o.Admit = func(found []*resource.Resource) error {
		if problems := taken.conflicts(found); len(problems) > 0 {
			return problems
		}
		return nil
	}
	r.rounds.Go(func() {
		defer cancel()
		_ = tasks.Guard(r.log, "checking the health of "+u.key, func() error { // the guard logs it
			_, err := reconcile.Run(ctx, b.graph, o)
			b.made = ctx.Err() == nil
			return err
		})
		r.queue.ended(b)
	})
}

// breakOff ends the round of a unit, if there is one, without a result.
func (u *unit) breakOff() {
	if u.health.round != nil {
		u.health.round.cancel()
		u.health.round, u.health.doubted = nil, false
	}
}

// concludeRound takes over what a round found. What was changed meanwhile may be why
// a check is critical, or was: then it does not count, and the checks are made
// again at once. That holds once, or a node that is never at rest would never know.
func (r *runner) concludeRound(ctx context.Context, b *round) {
	h := &b.unit.health
	if h.round != b {
		return // it was broken off
	}
	h.round = nil
	h.next = time.Now()
	switch {
	case b.unit.current == nil || b.unit.current.graph != b.graph:
		return
	case b.changes != r.changes && !h.doubted:
		h.doubted = true
		return
	}
	h.doubted = false
	if !b.made {
		h.next = h.next.Add(r.untilRound())
		return
	}
	for _, ref := range b.fell {
		r.registrar.Deregister(registrar.Source{Manifest: b.unit.key, Resource: ref})
	}
	for _, t := range b.transactions {
		r.note(ctx, b.unit, t)
		if t.OK() && !t.NotRun && !t.Skipped {
			r.registrar.Reregister(registrar.Source{Manifest: b.unit.key, Resource: t.Ref()})
		}
	}
	r.heal(b.unit, model.CauseHealth, false)
	r.sync()
}
