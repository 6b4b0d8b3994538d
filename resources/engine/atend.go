package engine

import (
	"context"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// atEndTime bounds each change that is made at the end of a run.
const atEndTime = time.Minute

// lateChange is a change that its type makes at the end of the run.
type lateChange struct {
	dueChange
	t *model.Transaction
	// planned are the changes as they were planned.
	planned []model.Change
	make    func(context.Context) error
	// refreshed is that a pending refresh was cleared for it.
	refreshed bool
	// interrupted is that its health checks were.
	interrupted bool
}

// lateOf returns the change of a resource that is made at the end of the run, nil where none is.
func (r *recorder) lateOf(ref model.Ref) *lateChange {
	for i := range r.late {
		if r.late[i].Node.Ref == ref {
			return &r.late[i]
		}
	}

	return nil
}

// finish makes the changes that were put off, in their order, and hands their transactions on. Once
// ctx has ended the rest are left out, and count as made: so are, most often, what it ended for. It
// ends, as a rule, while one is still being made.
func (r *recorder) finish(ctx context.Context) {
	for _, l := range r.late {
		n := r.Graph.Node(l.Node.Ref)
		var err error
		if ctx.Err() == nil {
			err = plan.Protect(func() error {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
				defer cancel()

				return l.make(ctx)
			})
		}
		if err == nil {
			r.repaired(n, l.t, l.Plan, time.Time{})
		} else {
			l.t.Changed, l.t.Refreshed, l.t.Changes = false, false, l.planned
			if l.refreshed {
				r.refreshes.Restore(ctx, n)
			}
			r.report.NoteDrift(n, l.Plan, false)
			r.fail(ctx, n, l.t, err)
		}
		r.register(n, l.t, l.interrupted)
		r.report.Release(n, l.t)
	}
}
