package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// In noop, a resource that would change makes the state of later resources unknown. This propagates
// along the edges: Result.Effect and Result.Until tell what later nodes cannot know, and until
// which node is applied.

// Expect records the effect of a node in noop. It is certain after until is applied.
func (u *Upstream) Expect(n *Node, effect Effect, until *Node) {
	res := u.Results.of(n)
	res.Effect, res.Until = effect, until
	if !u.isNoopOnly(n) {
		res.Pending = until
	}
}

// End marks a node as done.
func (u *Upstream) End(n *Node) {
	res := u.Results.of(n)
	res.Done = true
	if res.Pending == nil {
		res.Pending = u.pendingBefore(n)
	}
}

// affects reports whether the effect of dep counts for n. A resource that is always noop affects
// only such resources.
func (u *Upstream) affects(dep, n *Node) bool {
	return u.IsNoop(n) && (!u.isNoopOnly(dep) || u.isNoopOnly(n))
}

// effectOf returns the node that must be applied before n is known, because of the effect of dep on
// n. It is nil without an effect.
func (u *Upstream) effectOf(dep, n *Node) *Node {
	if res := u.Results.of(dep); res.Effect != None && u.affects(dep, n) {
		return res.Until
	}

	return nil
}

func (u *Upstream) firstEffect(nodes []*Node, n *Node) *Node {
	for _, dep := range nodes {
		if until := u.effectOf(dep, n); until != nil {
			return until
		}
	}

	return nil
}

// pendingBefore returns the last node with an effect before n, or nil. The nodes in between may be
// stable.
func (u *Upstream) pendingBefore(n *Node) *Node {
	var last *Node
	for _, dep := range n.Before {
		if p := cmp.Or(u.effectOf(dep, n), u.Results.of(dep).Pending); p != nil && (last == nil || p.At > last.At) {
			last = p
		}
	}

	return last
}

// outputsUnknownUntil returns the node that must be applied before the outputs that n uses are
// known, or nil.
func (u *Upstream) outputsUnknownUntil(n *Node) *Node {
	for _, need := range n.Resource.Taken {
		if dep := u.Graph.Node(need.Ref); dep != nil {
			if until := u.effectOf(dep, n); until != nil {
				return until
			}
		}
	}

	return nil
}

// manifestUnknownUntil returns, in noop, the node to apply before a manifest becomes readable. That manifest
// may declare an unknown reference of n. It is nil if n has no unknown reference.
func (u *Upstream) manifestUnknownUntil(n *Node) *Node {
	isUnknown := func(ref model.Ref) bool { return !u.Prior.Knows(ref) && !u.Graph.IsKnownExcluded(ref) }
	if !u.IsNoop(n) || !slices.ContainsFunc(slices.Concat(n.RequiresElsewhere, n.SubscribesElsewhere), isUnknown) {
		return nil
	}
	for _, other := range u.Graph.Nodes() {
		if res := u.Results.of(other); other.Resource.Expand != nil && res.Effect == Unsettled {
			return res.Pending
		}
	}

	return nil
}

// awaitsUnknown reports whether noop cannot know if n would be refreshed, or if its child manifest
// would change anything.
func (u *Upstream) awaitsUnknown(n *Node) bool {
	unsettled := func(dep *Node) bool { return u.Results.of(dep).Effect == Unsettled }
	if u.IsNoop(n) && slices.ContainsFunc(n.Children, unsettled) {
		return true
	}

	return n.Resource.Type.Refreshes && slices.ContainsFunc(n.Subscribes, func(dep *Node) bool { return unsettled(dep) && u.affects(dep, n) })
}

// outdatedUntil returns, in noop, the node that must be applied before the state of n is certain,
// because an earlier resource changes what n depends on. It is nil if the state is certain. empty
// reports an empty plan.
func (u *Upstream) outdatedUntil(n *Node, empty bool) *Node {
	g := u.Graph
	appear, disappear := n.Relations.SkipIfExists, n.Relations.SkipIfAbsent
	if empty {
		appear, disappear = disappear, appear
	}
	for _, what := range appear {
		if until := u.firstEffect(g.Providers[what], n); until != nil {
			return until
		}
	}
	for _, what := range disappear {
		if until := u.firstEffect(g.Removers[what], n); until != nil {
			return until
		}
	}
	if !empty {
		return nil
	}
	if len(n.Relations.Removes) > 0 {
		// The resources before n may create what n removes.
		for _, dep := range slices.Concat(n.Requires, n.Subscribes) {
			if until := u.effectOf(dep, n); until != nil && createsAnything(dep) {
				return until
			}
		}
	}
	for _, need := range n.Relations.Needs {
		if !need.ReadsContent {
			continue
		}
		if until := cmp.Or(u.firstEffect(g.Providers[need.What], n), u.firstEffect(g.Removers[need.What], n)); until != nil {
			return until
		}
	}

	return nil
}

// changerOf returns, in noop, the last resource before n that would provide or remove any of words,
// or nil.
func (u *Upstream) changerOf(n *Node, words []string) *Node {
	if len(words) == 0 || !u.IsNoop(n) {
		return nil
	}
	for _, p := range slices.Backward(u.Graph.Nodes()) {
		until := u.effectOf(p, n)
		if until != nil && slices.ContainsFunc(words, func(word string) bool {
			return provides(p, word) || slices.ContainsFunc(p.Relations.Removes, meets(word))
		}) {
			return until
		}
	}

	return nil
}

// implicitCreator returns the resource that implicitly creates what is missing and that waits for
// nothing. The run deviates from the order of the document only if an observation shows that
// something is missing.
func (u *Upstream) implicitCreator(needs []string) *Node {
	for _, need := range needs {
		for _, p := range u.Graph.ImplicitCreators[need] {
			if !u.Results.of(p).Started && !u.isNoopOnly(p) && !slices.ContainsFunc(p.Before, func(dep *Node) bool { return !u.Results.of(dep).Done }) {
				return p
			}
		}
	}

	return nil
}

// providerOf returns a resource with an effect that may provide what n needs: an exact provider, or
// else the nearest resource before n, or else the nearest resource that may create anything.
func (u *Upstream) providerOf(n *Node, needs []string) (p *Node, exact bool) {
	var before, near *Node
	for _, p := range slices.Backward(u.Graph.Nodes()) {
		if u.effectOf(p, n) == nil {
			continue
		}
		if slices.ContainsFunc(needs, func(need string) bool { return provides(p, need) }) {
			return p, true
		}
		if before == nil && slices.Contains(n.Before, p) {
			before = p
		}
		if near == nil && createsAnything(p) {
			near = p
		}
	}

	return cmp.Or(before, near), false
}

// createsAnything reports whether a resource may create more than it declares, like a command or a
// package.
func createsAnything(n *Node) bool {
	return n.Resource.Type.Writes.Overlaps(resource.Accounts)
}

// provides reports whether n provides a need. A need that ends with a slash means anything below a
// directory.
func provides(n *Node, need string) bool {
	return slices.ContainsFunc(n.Relations.Provides, func(p resource.Provision) bool { return meets(need)(p.What) })
}

func meets(need string) func(word string) bool {
	return func(word string) bool {
		return word == need || strings.HasSuffix(need, "/") && strings.HasPrefix(word, need)
	}
}

// Move transfers the results to a larger graph.
func (u *Upstream) Move(to *Graph) {
	u.Graph, u.Results = to, Moved(u.Graph, to, u.Results)
	for i := range u.Results {
		for _, other := range []**Node{&u.Results[i].Until, &u.Results[i].Pending} {
			if *other != nil {
				*other = to.Node((*other).Ref)
			}
		}
	}
}

// Moved returns values of the nodes of a graph by their positions in a larger graph.
func Moved[T any](from, to *Graph, values []T) []T {
	out := make([]T, to.Len())
	for i, n := range from.Nodes() {
		out[to.Node(n.Ref).At] = values[i]
	}

	return out
}
