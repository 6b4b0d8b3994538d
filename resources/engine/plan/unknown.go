package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// Noop is Decide without apply. What a resource would change makes unknown what
// others are judged by, and that flows along the edges: Result.Effect and
// Result.Until of a node say what those after it cannot know, and until when.

// Expect records the effect of a node in noop, known for certain once until is
// applied.
func (u *Upstream) Expect(n *graph.Node, effect Effect, until *graph.Node) {
	res := u.Results.of(n)
	res.Effect, res.Until = effect, until
	if !u.isNoopOnly(n) {
		res.Pending = until
	}
}

// End marks the turn of a node as ended.
func (u *Upstream) End(n *graph.Node) {
	res := u.Results.of(n)
	res.Done = true
	if res.Pending == nil {
		res.Pending = u.pendingBefore(n)
	}
}

// affects reports whether the effect of dep counts for n: a noop-only resource
// affects only noop-only ones.
func (u *Upstream) affects(dep, n *graph.Node) bool {
	return u.IsNoop(n) && (!u.isNoopOnly(dep) || u.isNoopOnly(n))
}

// effectOf returns until when the effect of dep leaves something of n unknown,
// nil when it has none that counts for n.
func (u *Upstream) effectOf(dep, n *graph.Node) *graph.Node {
	if res := u.Results.of(dep); res.Effect != None && u.affects(dep, n) {
		return res.Until
	}

	return nil
}

// firstEffect returns that of the first of nodes that has one.
func (u *Upstream) firstEffect(nodes []*graph.Node, n *graph.Node) *graph.Node {
	for _, dep := range nodes {
		if until := u.effectOf(dep, n); until != nil {
			return until
		}
	}

	return nil
}

// pendingBefore returns the last node with an effect before n, nil where there is
// none. The nodes in between may be stable.
func (u *Upstream) pendingBefore(n *graph.Node) *graph.Node {
	var last *graph.Node
	for _, dep := range n.Before {
		if p := cmp.Or(u.effectOf(dep, n), u.Results.of(dep).Pending); p != nil && (last == nil || p.At > last.At) {
			last = p
		}
	}

	return last
}

// taken returns until when the outputs that a late resource takes are unknown.
func (u *Upstream) outputsUnknownUntil(n *graph.Node) *graph.Node {
	for _, need := range n.Resource.Taken {
		if dep := u.Graph.Node(need.Ref); dep != nil {
			if until := u.effectOf(dep, n); until != nil {
				return until
			}
		}
	}

	return nil
}

// unread returns until when, in noop, the manifest cannot be read that may declare
// what n refers to; nil where n has no unknown reference.
func (u *Upstream) manifestUnknownUntil(n *graph.Node) *graph.Node {
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

// awaitsUnknown reports whether in noop it is unknown whether n would be
// refreshed, or whether the manifest that it includes would change anything.
func (u *Upstream) awaitsUnknown(n *graph.Node) bool {
	unsettled := func(dep *graph.Node) bool { return u.Results.of(dep).Effect == Unsettled }
	if u.IsNoop(n) && slices.ContainsFunc(n.Children, unsettled) {
		return true
	}

	return n.Resource.Type.Refreshes && slices.ContainsFunc(n.Subscribes, func(dep *graph.Node) bool { return unsettled(dep) && u.affects(dep, n) })
}

// outdatedUntil returns, in noop, what must be applied before the state of n can
// be believed, because a resource before it would change what it is judged by;
// nil when it can be already. empty means that nothing is due as it is now.
func (u *Upstream) outdatedUntil(n *graph.Node, empty bool) *graph.Node {
	g := u.Graph
	changers := g.Providers
	if empty {
		changers = g.Removers
	}
	for _, what := range n.Relations.SkipIfExists {
		if until := u.firstEffect(changers[what], n); until != nil {
			return until
		}
	}
	if !empty {
		return nil
	}
	if len(n.Relations.Removes) > 0 {
		// What is not there to be removed may be brought by what n comes after.
		for _, dep := range slices.Concat(n.Requires, n.Subscribes) {
			if until := u.effectOf(dep, n); until != nil && bringsAnything(dep) {
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

// changerOf returns the last resource before n that would provide or remove any of words, nil for
// none and for a run that is no noop.
func (u *Upstream) changerOf(n *graph.Node, words []string) *graph.Node {
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

// implicitCreator returns the resource that creates on its way what is missing,
// and that can go first because it waits for nothing. An observation shows what
// is missing, so the order of the document is left only where it would fail.
func (u *Upstream) implicitCreator(needs []string) *graph.Node {
	for _, need := range needs {
		for _, p := range u.Graph.ImplicitCreators[need] {
			if !u.Results.of(p).Started && !u.isNoopOnly(p) && !slices.ContainsFunc(p.Before, func(dep *graph.Node) bool { return !u.Results.of(dep).Done }) {
				return p
			}
		}
	}

	return nil
}

// providerOf returns the resource with an effect that may bring what n needs: one
// that provides just that, or else the nearest that n comes after, or else the
// nearest that may bring anything.
func (u *Upstream) providerOf(n *graph.Node, needs []string) (p *graph.Node, exact bool) {
	var before, near *graph.Node
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
		if near == nil && bringsAnything(p) {
			near = p
		}
	}

	return cmp.Or(before, near), false
}

// bringsAnything reports whether a resource may bring more than it says, as a
// command or a package does.
func bringsAnything(n *graph.Node) bool {
	return n.Resource.Type.Writes.Overlaps(resource.Accounts)
}

// provides reports whether n provides what is needed; a need that ends with a
// slash is one for anything below a directory.
func provides(n *graph.Node, need string) bool {
	return slices.ContainsFunc(n.Relations.Provides, func(p resource.Provision) bool { return meets(need)(p.What) })
}

// meets returns whether a word meets a need.
func meets(need string) func(word string) bool {
	return func(word string) bool {
		return word == need || strings.HasSuffix(need, "/") && strings.HasPrefix(word, need)
	}
}

// Move carries the results over to a graph that has more nodes.
func (u *Upstream) Move(to *graph.Graph) {
	from, before := u.Graph, u.Results
	u.Graph, u.Results = to, make([]Result, to.Len())
	for i, n := range from.Nodes() {
		res := before[i]
		for _, other := range []**graph.Node{&res.Until, &res.Pending} {
			if *other != nil {
				*other = to.Node((*other).Ref)
			}
		}
		u.Results[to.Node(n.Ref).At] = res
	}
}
