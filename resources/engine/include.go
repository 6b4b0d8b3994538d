package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/resource"
)

// expand reads the manifest that n includes and inserts its resources before n. If the manifest is
// invalid, none of its resources runs.
func (r *run) expand(ctx context.Context, n *plan.Node) error {
	found, err := n.Resource.Expand(ctx, r.observer.spec(n))
	if err != nil {
		return err
	}
	for _, res := range found.Resources {
		if res.Type.Include != nil {
			r.inclusions++
		}
	}
	if r.inclusions > resource.MaxInclusions {
		return fmt.Errorf("more than %d child manifests were included during the run; a manifest may include itself", resource.MaxInclusions)
	}
	// From here on, all reports may contain values of the child manifest.
	r.secrets.add(found.Secrets...)
	if r.opts.Admit != nil {
		err = r.opts.Admit(found.Resources)
	}
	if err != nil {
		return err
	}
	g, err := r.Graph.Expand(n, found, r.opts.Prior.Knows)
	if err != nil {
		return err
	}
	for _, w := range found.Warnings {
		r.Env(n).Log.WarnContext(ctx, w.Error())
	}

	return r.replaceGraph(ctx, g)
}

// replaceGraph continues the run with a larger graph and observes the new resources.
func (r *run) replaceGraph(ctx context.Context, g *plan.Graph) error {
	old := r.Graph
	r.Move(g)
	r.observer.seen = plan.Moved(old, g, r.observer.seen)
	r.report.ended, r.report.next, r.report.graph = plan.Moved(old, g, r.report.ended), 0, g
	r.cursor = 0
	fresh := slices.DeleteFunc(slices.Clone(g.Nodes()), func(n *plan.Node) bool { return old.Node(n.Ref) != nil })
	r.secrets.addOf(fresh)
	r.observer.all(ctx, fresh)

	return r.refreshes.joined(ctx, fresh)
}

// announcer logs the messages of child manifests, each once.
type announcer struct {
	access *access
	// started are the nodes with a started child manifest.
	started map[model.Ref]bool
}

func (a *announcer) begin(ctx context.Context, n *plan.Node) {
	for _, p := range n.Parents {
		a.begin(ctx, p)
	}
	if n.Resource.Type.Include == nil || a.started[n.Ref] {
		return
	}
	a.started[n.Ref] = true
	env := a.access.Env(n)
	if n.Resource.NeverNoop && env.Scope.Noop {
		env.Log.WarnContext(ctx, "noop: false is ignored, the parent manifest runs in noop", "child", n.Ref.Name)
	}
	a.show(ctx, n, n.Resource.Messages.Before)
}

// isDue reports whether a manifest logs a message when n begins.
func (a *announcer) isDue(n *plan.Node) bool {
	return slices.ContainsFunc(n.Parents, func(p *plan.Node) bool {
		return !a.started[p.Ref] && (p.Resource.Messages.Before != "" || a.isDue(p))
	})
}

func (a *announcer) end(n *plan.Node) {
	if a.started[n.Ref] {
		a.show(context.Background(), n, n.Resource.Messages.After)
	}
}

func (a *announcer) show(ctx context.Context, n *plan.Node, message string) {
	if message != "" {
		a.access.Env(nil).Log.InfoContext(ctx, message, "manifest", n.Ref.Name)
	}
}
