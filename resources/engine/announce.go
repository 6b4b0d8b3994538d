package engine

import (
	"context"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
)

// announcer shows the messages of included manifests, each once.
type announcer struct {
	access *access
	// begun are the nodes that include a manifest which has begun.
	begun map[model.Ref]bool
}

// begin shows that the manifests begin which n is part of or includes, the
// outermost first.
func (a *announcer) begin(ctx context.Context, n *graph.Node) {
	for _, p := range n.Parents {
		a.begin(ctx, p)
	}
	if n.Resource.Type.Include == nil || a.begun[n.Ref] {
		return
	}
	a.begun[n.Ref] = true
	env := a.access.Env(n)
	if n.Resource.NeverNoop && env.Scope.Noop {
		env.Log.WarnContext(ctx, "noop: false is ignored, the parent manifest runs in noop", "child", n.Ref.Name)
	}
	a.show(ctx, n, n.Resource.Messages.Before)
}

// isDue reports whether a manifest shows a message when n begins.
func (a *announcer) isDue(n *graph.Node) bool {
	return slices.ContainsFunc(n.Parents, func(p *graph.Node) bool {
		return !a.begun[p.Ref] && (p.Resource.Messages.Before != "" || a.isDue(p))
	})
}

// end shows that the manifest ends which n includes.
func (a *announcer) end(n *graph.Node) {
	if a.begun[n.Ref] {
		a.show(context.Background(), n, n.Resource.Messages.After)
	}
}

func (a *announcer) show(ctx context.Context, n *graph.Node, message string) {
	if message != "" {
		a.access.Env(nil).Log.InfoContext(ctx, message, "manifest", n.Ref.Name)
	}
}
