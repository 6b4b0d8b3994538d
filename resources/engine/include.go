package engine

import (
	"context"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// announce shows that the manifests begin which n is part of or includes, the
// outermost first, each once.
func (r *run) announce(ctx context.Context, n *graph.Node) {
	for _, p := range n.Parents {
		r.announce(ctx, p)
	}
	if n.Resource.Type.Include == nil || r.announced[n.Ref] {
		return
	}
	r.announced[n.Ref] = true
	if n.Resource.NeverNoop && r.up.ScopeOf(n).Noop {
		r.Env(n).Log.WarnContext(ctx, "noop: false is ignored, the parent manifest runs in noop", "child", n.Ref.Name)
	}
	r.show(ctx, n, n.Resource.Messages.Before)
}

// isAnnouncedBy reports whether a manifest shows a message when n begins.
func (r *run) isAnnouncedBy(n *graph.Node) bool {
	return slices.ContainsFunc(n.Parents, func(p *graph.Node) bool {
		return !r.announced[p.Ref] && (p.Resource.Messages.Before != "" || r.isAnnouncedBy(p))
	})
}

// show shows a message of the manifest that n includes.
func (r *run) show(ctx context.Context, n *graph.Node, message string) {
	if message != "" {
		r.Env(nil).Log.InfoContext(ctx, message, "manifest", n.Ref.Name)
	}
}

// onTransaction hands a transaction on, and shows the message of a manifest that
// has ended.
func (r *run) onTransaction(n *graph.Node, t *model.Transaction) {
	if r.opts.OnTransaction != nil {
		r.opts.OnTransaction(t)
	}
	if r.announced[n.Ref] {
		r.show(context.Background(), n, n.Resource.Messages.After)
	}
}

// expand reads the manifest that n includes and makes its resources part of the
// run, in front of n. Nothing of it runs when anything is wrong with it.
func (r *run) expand(ctx context.Context, n *graph.Node) error {
	found, err := n.Resource.Expand(ctx, r.observer.Spec(n))
	if err != nil {
		return err
	}
	// From now on everything that is reported may be about what was found.
	r.secrets.Add(found.Secrets...)
	if r.opts.Admit != nil {
		err = r.opts.Admit(found.Resources)
	}
	if err != nil {
		return err
	}
	g, err := r.up.Graph.Expand(n, found, r.opts.Earlier.Knows)
	if err != nil {
		return err
	}
	for _, w := range found.Warnings {
		r.Env(n).Log.WarnContext(ctx, w.Error())
	}

	return r.replaceGraph(ctx, g)
}

// replaceGraph goes on with a graph that has more resources, and observes those.
func (r *run) replaceGraph(ctx context.Context, g *graph.Graph) error {
	old := r.up.Graph
	r.up.Move(g)
	r.observer.Move(old, g)
	r.report.Move(g)
	r.cursor = 0
	fresh := slices.DeleteFunc(slices.Clone(g.Nodes()), func(n *graph.Node) bool { return old.Node(n.Ref) != nil })
	r.secrets.AddOf(fresh)
	r.observeAll(ctx, fresh)

	return r.refreshes.Joined(ctx, fresh)
}
