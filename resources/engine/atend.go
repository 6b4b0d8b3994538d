package engine

import (
	"context"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// atEndTime limits each change at the end of a run.
const atEndTime = time.Minute

// deferredChange is a change that a type makes at the end of the run.
type deferredChange struct {
	dueChange
	t *model.Transaction
	// planned are the planned changes, for a failure.
	planned []model.Change
	make    func(context.Context) error
	// refreshed reports whether a pending refresh was cleared for this change.
	refreshed bool
	// interrupted reports whether the health checks were interrupted.
	interrupted bool
}

// deferredOf returns the deferred change of a resource, or nil.
func (r *recorder) deferredOf(ref model.Ref) *deferredChange {
	for i := range r.deferred {
		if r.deferred[i].node.Ref == ref {
			return &r.deferred[i]
		}
	}

	return nil
}

// finish makes the deferred changes in order and emits their transactions. After ctx has ended it
// makes no change, but counts the remaining changes as made. Usually one of them ended ctx, for
// example a restart of the agent.
func (r *recorder) finish(ctx context.Context) {
	for _, l := range r.deferred {
		n := r.Graph.Node(l.node.Ref)
		var err error
		if ctx.Err() == nil {
			err = plan.Protect(func() error {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
				defer cancel()

				return l.make(ctx)
			})
		}
		if err == nil {
			r.repaired(n, l.t, l.plan, time.Time{})
		} else {
			l.t.Changed, l.t.Refreshed, l.t.Changes = false, false, l.planned
			if l.refreshed {
				r.refreshes.restore(ctx, n)
			}
			r.report.noteDrift(n, l.plan, false)
			r.fail(ctx, n, l.t, err)
		}
		r.register(n, l.t, l.interrupted)
		r.report.release(n, l.t)
	}
}

// reloadUnits runs a daemon-reload if the run changed unit files and no change of a service ran
// one. It also runs after an interrupt, because the next run finds the unit files up to date.
func (r *run) reloadUnits(ctx context.Context) {
	h := r.opts.Env.Host
	if h == nil {
		return
	}
	if r.opts.Env.Scope.ReadOnly() {
		if h.IsReloadPending(r.opts.Parents) {
			r.opts.Env.Log.WarnContext(ctx, "systemd would reload its unit files, because an earlier run was killed before the daemon-reload")
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEndTime)
	defer cancel()
	done, err := h.ReloadUnits(ctx, r.opts.RunID, r.opts.Parents)
	if err != nil {
		r.report.addError(err.Error())
	}
	if done {
		r.opts.Env.Log.InfoContext(ctx, "systemd reloaded its unit files")
	}
}

// wouldReloadUnits reports whether a plan causes a daemon-reload, because it writes or removes a
// unit file.
func (r *run) wouldReloadUnits(n *graph.Node, due resource.Plan) bool {
	reloads := r.opts.Env.Host.WouldReloadUnits
	if due.Paths != nil {
		return reloads(due.Paths...)
	}
	if n.Resource.Type.Relations == nil {
		return false
	}
	relations := n.Resource.Type.Relations(r.observer.spec(n))
	words := relations.Removes
	for _, p := range relations.Provides {
		if !p.Implicit {
			words = append(words, p.What)
		}
	}

	var paths []string
	for _, word := range words {
		if path, ok := strings.CutPrefix(word, resource.PathNeed("")); ok {
			paths = append(paths, path)
		}
	}

	return reloads(paths...)
}
