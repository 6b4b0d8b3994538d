package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// Refreshes are the pending refreshes of a run: those of Upstream.Pending, kept
// equal to its Journal.
type pendingRefreshes struct {
	journal Journal
	up      *plan.Upstream
	log     *slog.Logger
	// added had no refresh pending before the changes in hand.
	added []model.Ref
	// lost means that what earlier runs left pending is not known.
	lost bool
	// errors are about the journal, and none of a resource.
	errors []string
}

// NewRefreshes returns the refreshes of a run. A nil journal means that they do
// not outlive it.
func newPendingRefreshes(j Journal, up *plan.Upstream, log *slog.Logger) *pendingRefreshes {
	return &pendingRefreshes{journal: j, up: up, log: log}
}

// Errors returns what went wrong with the journal so far. The run goes on, so
// that a refresh may be made twice or be lost is reported, not swallowed.
func (r *pendingRefreshes) Errors() []string { return r.errors }

// Recall reads what earlier runs left pending.
func (r *pendingRefreshes) Recall(ctx context.Context) {
	if r.journal == nil {
		return
	}
	if r.isPart() && !slices.ContainsFunc(r.up.Graph.Nodes(), func(n *graph.Node) bool { return len(n.Subscribes)+len(n.SubscribesElsewhere) > 0 }) {
		return // no refresh can be due to any of them
	}
	pending, err := r.journal.Pending()
	if errors.Is(err, ErrDamagedJournal) && !r.isPart() {
		r.log.WarnContext(ctx, "refreshing all subscribers, the pending refreshes are lost", "error", err)
		pending, r.lost = plan.Refreshable(r.up.Graph.Nodes()), true
		if err = nil; !r.up.Scope.ReadOnly() {
			err = r.journal.Reset(ctx, pending...)
		}
	}
	if err != nil {
		r.errors = append(r.errors, "reading the journal of pending refreshes: "+err.Error())
	}
	r.mark(pending)
}

func (r *pendingRefreshes) mark(refs []model.Ref) {
	for _, ref := range refs {
		r.up.Pending[ref] = true
	}
}

// Joined makes the refreshes of nodes pending that joined during a run which
// does not know what earlier ones left pending.
func (r *pendingRefreshes) Joined(ctx context.Context, nodes []*graph.Node) error {
	refs := plan.Refreshable(nodes)
	if !r.lost || len(refs) == 0 {
		return nil
	}
	r.mark(refs)
	if r.up.Scope.Noop {
		return nil
	}

	return r.journal.Add(ctx, refs...)
}

// Notify writes down, before nodes change, that their subscribers have a refresh
// pending, and those of what includes them, for which that is a change too. It
// is one write for all of them.
func (r *pendingRefreshes) Notify(ctx context.Context, nodes ...*graph.Node) error {
	if r.journal == nil {
		return nil
	}
	var refs []model.Ref
	for _, n := range nodes {
		for _, ref := range r.up.ToNotify(n) {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if err := r.journal.Add(ctx, refs...); err != nil {
		return fmt.Errorf("not changed, because the refresh of its subscribers cannot be recorded: %w", err)
	}
	r.mark(refs)
	r.added = append(r.added, refs...)

	return nil
}

// CancelPending clears what was written down for the changes in hand when they
// left everything as it was: a subscriber must not restart at every run because
// a file cannot be written.
func (r *pendingRefreshes) CancelPending(ctx context.Context) {
	for _, ref := range r.added {
		if !slices.ContainsFunc(r.up.Graph.Node(ref).Subscribes, r.up.Results.WasTouched) {
			r.clear(ctx, ref)
		}
	}
	r.added = nil
}

// Made clears the refresh of a node that was made, unless more of it is to come, and reports
// whether it did.
func (r *pendingRefreshes) Made(ctx context.Context, n *graph.Node) (cleared bool) {
	if cleared = r.up.Pending[n.Ref] && r.journal != nil && !r.up.Results.IsPartlyApplied(n); cleared {
		r.clear(ctx, n.Ref)
	}

	return cleared
}

// Restore makes the refresh of a node pending again, which failed after Made cleared it.
func (r *pendingRefreshes) Restore(ctx context.Context, n *graph.Node) {
	if err := r.journal.Add(context.WithoutCancel(ctx), n.Ref); err != nil {
		r.errors = append(r.errors, "recording the pending refresh of "+n.Ref.String()+": "+err.Error())
	}
	r.mark([]model.Ref{n.Ref})
}

// isPart reports whether the run is one of a part of its manifest.
func (r *pendingRefreshes) isPart() bool { return r.up.Graph.PartOf() != nil }

// ClearUndeclared clears the refreshes of resources that are not in the manifest
// any more, or subscribe to nothing. What a manifest declares that was not read
// is not known to be gone, nor what is in no part.
func (r *pendingRefreshes) ClearUndeclared(ctx context.Context) {
	g := r.up.Graph
	if r.up.Scope.ReadOnly() || r.journal == nil || r.isPart() || slices.ContainsFunc(g.Nodes(), isOpenEnded) {
		return
	}
	for ref := range r.up.Pending {
		if n := g.Node(ref); n == nil || len(n.Subscribes) == 0 {
			r.clear(ctx, ref)
		}
	}
}

func isOpenEnded(n *graph.Node) bool { return graph.IsOpenEnded(n.Resource) }

// clear removes a refresh; one that cannot be removed is made once more.
func (r *pendingRefreshes) clear(ctx context.Context, ref model.Ref) {
	if err := r.journal.Clear(context.WithoutCancel(ctx), ref); err != nil {
		r.errors = append(r.errors, "clearing the pending refresh of "+ref.String()+": "+err.Error())
	}
	delete(r.up.Pending, ref)
}
