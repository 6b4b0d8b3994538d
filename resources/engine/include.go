package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// isOpenEnded says that a resource includes a manifest of which nothing is known
// before the run.
func isOpenEnded(r *resource.Resource) bool {
	return r.Expand != nil || (isLeftOut(r) && r.LeftOut == nil)
}

// isLeftOut says that a resource would include a manifest and is excluded.
func isLeftOut(r *resource.Resource) bool { return r.Type.Include != nil && r.Excluded != "" }

// LeftOut says that a reference may be to what a manifest declares that is left out.
func (g *Graph) LeftOut(ref model.Ref) bool {
	return g.isNameLeftOut(ref) || slices.ContainsFunc(g.nodes, func(n *node) bool { return isLeftOut(n.res) && n.res.LeftOut == nil })
}

// isNameLeftOut says that a reference is to what is known to be left out.
func (g *Graph) isNameLeftOut(ref model.Ref) bool {
	return slices.ContainsFunc(g.nodes, func(n *node) bool { return n.res.LeftOut[ref] })
}

// include ties included resources to what includes them, outer ones first: they
// come before it, and after all it waits for, and are gated with it. One that is
// declared elsewhere too is tied by what declares it first.
func (g *Graph) include() {
	for _, n := range slices.Backward(g.nodes) {
		for _, res := range n.res.Children {
			child, found := g.byRef[res.Ref()]
			if !found {
				continue
			}
			n.children, child.within = append(n.children, child), append(child.within, n)
			n.ends = n.ends || res.Scope.FailOnError
			if child.res == res {
				g.gate(n, child)
			}
		}
		for _, child := range n.children {
			g.edge(child, n, Edge{Reason: "part of it"})
		}
	}
	g.waitForUnknown()
}

// gate makes an included resource wait for all that the one waits for that includes it.
func (g *Graph) gate(n, child *node) {
	child.owner = n
	child.requires = append(child.requires, n.requires...)
	child.earlierRequires = append(child.earlierRequires, n.earlierRequires...)
	for _, dep := range n.before {
		if !slices.Contains(child.before, dep) {
			g.edge(dep, child, Edge{Reason: "needed by " + n.ref.String()})
		}
	}
}

// waitForUnknown makes what refers to something unknown wait for the manifests
// that are read during the run, which may declare it.
func (g *Graph) waitForUnknown() {
	var late []*node
	for _, n := range g.nodes {
		if n.res.Expand != nil {
			late = append(late, n)
		}
	}
	known := ancestry{size: len(g.nodes)}
	for _, n := range g.nodes {
		if len(n.earlierRequires)+len(n.earlierSubscribes) == 0 {
			continue
		}
		for _, l := range late {
			if !slices.Contains(n.before, l) && !known.reaches(n, l) {
				g.edge(l, n, Edge{Reason: "may declare what it refers to", Automatic: true})
				known.added(l, n)
			}
		}
	}
}

// scope is what holds for a resource in this run.
func (r *run) scope(n *node) resource.Scope {
	root, own := r.opts.Env.Scope, n.res.Scope
	if own.Depth == 0 {
		return root
	}
	own.Noop, own.HealthCheckOnly = own.Noop || root.Noop, own.HealthCheckOnly || root.HealthCheckOnly

	return own
}

// stopsAtFailure says that a manifest which declares n ends at its first failure.
func (r *run) stopsAtFailure(n *node) bool {
	return (n.res.Scope.Depth == 0 && r.opts.FailOnError) || slices.ContainsFunc(n.within, func(outer *node) bool { return outer.ends })
}

// halt ends what declares n after it failed.
func (r *run) halt(n *node) {
	reason := n.ref.String() + " failed and fail_on_error is set"
	if n.res.Scope.Depth == 0 && r.opts.FailOnError && r.stopped == "" {
		r.stopped = reason
	}
	for _, outer := range n.within {
		if outer.ends && r.halted[outer.ref] == "" {
			r.halted[outer.ref] = reason
		}
	}
}

// haltedBy gives why all that declares n, or includes that, has ended.
func (r *run) haltedBy(n *node) (reason string) {
	if n.res.Scope.Depth == 0 {
		return ""
	}
	for _, outer := range n.within {
		if reason = cmp.Or(r.halted[outer.ref], r.haltedBy(outer)); reason == "" {
			return ""
		}
	}

	return reason
}

// announce says that the manifests begin which n is part of, or includes itself,
// the outermost first, each once.
func (r *run) announce(ctx context.Context, n *node) {
	for _, outer := range n.within {
		r.announce(ctx, outer)
	}
	if n.res.Type.Include == nil || r.announced[n.ref] {
		return
	}
	r.announced[n.ref] = true
	if n.res.NeverNoop && r.scope(n).Noop {
		r.env(n).Log.WarnContext(ctx, "the parent manifest changes nothing, so the child does not either", "child", n.ref.Name)
	}
	r.say(ctx, n, n.res.Messages.Before)
}

// begins says that a manifest shows something before n has its turn.
func (r *run) begins(n *node) bool {
	return slices.ContainsFunc(n.within, func(outer *node) bool {
		return !r.announced[outer.ref] && (outer.res.Messages.Before != "" || r.begins(outer))
	})
}

// say shows a message of the manifest that n includes.
func (r *run) say(ctx context.Context, n *node, message string) {
	if message != "" {
		r.env(nil).Log.InfoContext(ctx, message, "manifest", n.ref.Name)
	}
}

// expand reads the manifest that n includes and makes its resources part of the
// run, in front of n. Nothing of it runs when anything is wrong with it.
func (r *run) expand(ctx context.Context, n *node) error {
	if by := r.graph.byRef[n.res.Brings]; by != nil && r.isNoop(n) && r.results[by.at].would {
		return unknownError{until: by}
	}
	if err := r.resolveLate(ctx, n); err != nil {
		return err
	}
	found, err := n.res.Expand(ctx, r.looks[n.at].spec)
	if err != nil {
		return err
	}
	// From now on everything that is said may be about what was found.
	r.addSecrets(found.Secrets...)
	if r.opts.Admit != nil {
		err = r.opts.Admit(found.Resources)
	}
	if err != nil {
		return err
	}
	// What is there already, n itself too, is not there once more.
	found.Resources = slices.DeleteFunc(found.Resources, func(res *resource.Resource) bool {
		have := r.graph.byRef[res.Ref()]
		return have != nil && have.res.IsSame(res)
	})
	expanded := *n.res
	expanded.Children, expanded.Messages, expanded.Expand = found.Children, found.Messages, nil
	var all []*resource.Resource
	for _, other := range r.graph.declared() {
		if other == n.res {
			all = append(all, found.Resources...)
			other = &expanded
		}
		all = append(all, other)
	}
	g, err := Build(all, r.opts.Earlier.Knows)
	if err != nil {
		return err
	}
	for _, w := range found.Warnings {
		r.env(n).Log.WarnContext(ctx, w.Error())
	}

	return r.adopt(ctx, g)
}

// declared gives the resources in the order of their declaration.
func (g *Graph) declared() []*resource.Resource {
	nodes := slices.Clone(g.nodes)
	slices.SortFunc(nodes, func(a, b *node) int { return a.declared - b.declared })
	out := make([]*resource.Resource, len(nodes))
	for i, n := range nodes {
		out[i] = n.res
	}

	return out
}

// adopt goes on with a graph that has more resources, and looks at those.
func (r *run) adopt(ctx context.Context, g *Graph) error {
	old, looks, results := r.graph, r.looks, r.results
	r.graph, r.looks, r.results = g, make([]look, len(g.nodes)), make([]result, len(g.nodes))
	for _, before := range old.nodes {
		n := g.byRef[before.ref]
		res := results[before.at]
		for _, other := range []**node{&res.until, &res.provided, &res.pending} {
			if *other != nil {
				*other = g.byRef[(*other).ref]
			}
		}
		r.looks[n.at], r.results[n.at] = looks[before.at], res
	}
	r.told, r.cursor = 0, 0
	r.learnSecrets()
	fresh := slices.DeleteFunc(slices.Clone(g.nodes), func(n *node) bool { return old.byRef[n.ref] != nil })
	r.lookAll(ctx, fresh)

	return r.oweUnknown(ctx, fresh)
}

// next gives the first resource that has not had its turn, nil when all have.
func (r *run) next() *node {
	for ; r.cursor < len(r.graph.nodes); r.cursor++ {
		if !r.results[r.cursor].done {
			return r.graph.nodes[r.cursor]
		}
	}

	return nil
}

// countFor counts a transaction for whatever includes its resource.
func (r *run) countFor(n *node, t *model.Transaction) {
	for _, outer := range n.within {
		counts := r.children[outer.ref]
		counts.Unique++
		counts.Add(t)
		r.children[outer.ref] = counts
	}
}

// neverCame says that a resource which another one requires was not in any of
// the manifests that were read during the run either. Those of a manifest that
// is left out count as met, like any that control excludes.
func (r *run) neverCame(ref model.Ref) bool {
	return !r.opts.Earlier.Knows(ref) && !r.graph.LeftOut(ref)
}

// unread gives, in noop, what must be applied before the manifest can be read that
// may declare what n refers to; nil where n refers to nothing unknown.
func (r *run) unread(n *node) *node {
	unknown := func(ref model.Ref) bool { return !r.opts.Earlier.Knows(ref) && !r.graph.isNameLeftOut(ref) }
	if !r.isNoop(n) || !slices.ContainsFunc(slices.Concat(n.earlierRequires, n.earlierSubscribes), unknown) {
		return nil
	}
	for _, other := range r.graph.nodes {
		if other.res.Expand != nil && r.results[other.at].unknown {
			return r.results[other.at].pending
		}
	}

	return nil
}
