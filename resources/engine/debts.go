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
		owed = r.refreshable()
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
func (r *run) refreshable() []model.Ref {
	var refs []model.Ref
	for _, n := range r.graph.nodes {
		if n.res.Type.Refreshes && len(n.subscribes) > 0 && n.res.Excluded == "" && !n.res.Meta().Noop {
			refs = append(refs, n.ref)
		}
	}

	return refs
}

// forgetDebts strikes out what is owed to resources that are not in the
// manifest any more, or subscribe to nothing.
func (r *run) forgetDebts(ctx context.Context) {
	if r.opts.Env.Scope.Unchanging() || r.opts.Journal == nil {
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
// refreshed.
func (r *run) owe(ctx context.Context, n *node) error {
	if r.opts.Journal == nil {
		return nil
	}
	var refs []model.Ref
	for _, s := range n.subscribers {
		if s.res.Type.Refreshes && !r.owed[s.ref] && s.res.Excluded == "" && !r.isNoop(s) {
			refs = append(refs, s.ref)
		}
	}
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

// forgive strikes out what was written down for the changes in hand and is not
// owed after all, because they left everything as it was: a subscriber must not
// be restarted at every run because a file cannot be written.
func (r *run) forgive(ctx context.Context) {
	for _, ref := range r.lent {
		if !slices.ContainsFunc(r.graph.byRef[ref].subscribes, func(dep *node) bool { return r.results[dep.at].touched }) {
			r.strike(ctx, ref)
		}
	}
	r.lent = nil
}

// settle strikes out what a resource is owed.
func (r *run) settle(ctx context.Context, n *node) {
	if r.owed[n.ref] && r.opts.Journal != nil {
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
