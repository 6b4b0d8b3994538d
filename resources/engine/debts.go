package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
)

// recallDebts reads what earlier runs left unpaid.
func (r *run) recallDebts(ctx context.Context) {
	if r.opts.Journal == nil {
		return
	}
	owed, err := r.opts.Journal.Owed()
	if errors.Is(err, ErrJournalDamaged) {
		r.opts.Env.Log.WarnContext(ctx, "all that subscribe are refreshed, for nobody knows to whom that is owed", "error", err)
		owed, r.unknown = refreshable(r.graph.nodes), true
		if err = nil; !r.opts.Env.Scope.Unchanging() {
			err = r.opts.Journal.Reset(ctx, owed...)
		}
	}
	if err != nil {
		// Without it a refresh may be lost, so this is said and not swallowed; the
		// run itself is still better than none.
		r.summary.Errors = append(r.summary.Errors, "reading the journal of owed refreshes: "+err.Error())
	}
	for _, ref := range owed {
		r.owed[ref] = true
	}
}

// refreshable gives all to whom a refresh may be owed.
func refreshable(nodes []*node) []model.Ref {
	var refs []model.Ref
	for _, n := range nodes {
		if n.res.Type.Refreshes && len(n.subscribes) > 0 && n.res.Excluded == "" && !n.res.Meta().Noop {
			refs = append(refs, n.ref)
		}
	}

	return refs
}

// oweUnknown owes a refresh to resources that came during the run, where nobody
// knows to whom it is owed.
func (r *run) oweUnknown(ctx context.Context, fresh []*node) error {
	refs := refreshable(fresh)
	if !r.unknown || len(refs) == 0 {
		return nil
	}
	for _, ref := range refs {
		r.owed[ref] = true
	}
	if r.opts.Env.Scope.Noop {
		return nil
	}

	return r.opts.Journal.Owe(ctx, refs...)
}

// forgetDebts strikes out what is owed to resources that are not in the
// manifest any more, or subscribe to nothing. What is in a manifest that was
// not read is not known to be gone.
func (r *run) forgetDebts(ctx context.Context) {
	if r.opts.Env.Scope.Unchanging() || r.opts.Journal == nil || slices.ContainsFunc(r.graph.nodes, func(n *node) bool { return isOpenEnded(n.res) }) {
		return
	}
	for ref := range r.owed {
		if n, still := r.graph.byRef[ref]; still && len(n.subscribes) > 0 {
			continue
		}
		r.strike(ctx, ref)
	}
}

// owe writes down, before a resource changes, that its subscribers are to be
// refreshed, and those of what includes it, for which that is a change too.
func (r *run) owe(ctx context.Context, n *node) error {
	if r.opts.Journal == nil {
		return nil
	}
	refs := r.creditors(n, nil)
	if len(refs) == 0 {
		return nil
	}
	if err := r.opts.Journal.Owe(ctx, refs...); err != nil {
		return fmt.Errorf("recording the refresh owed to its subscribers, without which it is not changed: %w", err)
	}
	for _, ref := range refs {
		r.owed[ref] = true
	}
	r.lent = append(r.lent, refs...)

	return nil
}

// creditors adds who is to be refreshed when n changes, and is not owed that yet.
func (r *run) creditors(n *node, refs []model.Ref) []model.Ref {
	for _, s := range n.subscribers {
		if s.res.Type.Refreshes && !r.owed[s.ref] && !slices.Contains(refs, s.ref) && s.res.Excluded == "" && !r.isNoop(s) {
			refs = append(refs, s.ref)
		}
	}
	for _, outer := range n.within {
		refs = r.creditors(outer, refs)
	}

	return refs
}

// forgive strikes out what was written down for the changes in hand and is not
// owed after all, because they left everything as it was: a subscriber must not
// be restarted at every run because a file cannot be written.
func (r *run) forgive(ctx context.Context) {
	for _, ref := range r.lent {
		if !slices.ContainsFunc(r.graph.byRef[ref].subscribes, r.wasTouched) {
			r.strike(ctx, ref)
		}
	}
	r.lent = nil
}

// wasTouched says that a resource, or one that it includes, is not known to be as it was.
func (r *run) wasTouched(n *node) bool {
	return r.results[n.at].touched || slices.ContainsFunc(n.children, r.wasTouched)
}

// halfway says that something n subscribes to failed in this run and may have
// changed all the same: the refresh for that is due when it is as it should be,
// and not before, or it would be made at every run.
func (r *run) halfway(n *node) bool {
	return slices.ContainsFunc(n.subscribes, func(dep *node) bool { return r.results[dep.at].failed && r.results[dep.at].touched })
}

// settle strikes out what a resource is owed, unless more of it is still to come.
func (r *run) settle(ctx context.Context, n *node) {
	if r.owed[n.ref] && r.opts.Journal != nil && !r.halfway(n) {
		r.strike(ctx, n.ref)
	}
}

// strike strikes out a debt; one that cannot be struck out is paid once more.
func (r *run) strike(ctx context.Context, ref model.Ref) {
	if err := r.opts.Journal.Settle(ctx, ref); err != nil {
		r.summary.Errors = append(r.summary.Errors, "striking out the refresh owed to "+ref.String()+": "+err.Error())
	}
	delete(r.owed, ref)
}
