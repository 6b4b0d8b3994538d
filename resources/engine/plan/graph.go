package plan

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Edge orders From before To.
type Edge struct {
	From, To model.Ref
	// Reason is the property require or subscribe, the function outputs or readFile of an
	// expression, or the relation of an automatic edge, for example path:/etc/app.
	Reason string
	// Automatic marks an edge that the manifest does not declare. It orders, and it gates if From
	// provides a path.
	Automatic bool
}

// Graph contains the resources of a manifest in run order. A run does not change it.
type Graph struct {
	nodes []*Node
	byRef map[model.Ref]*Node
	// Providers, ImplicitCreators and Removers are the nodes that provide, implicitly create or
	// remove something, by its name.
	Providers, ImplicitCreators, Removers map[string][]*Node

	partOf *Graph // set in a part
	// openEnded reports whether some manifests are unread: they are read during the run, or
	// excluded.
	openEnded bool
}

// Node is a resource with its edges. Other packages must not change it.
type Node struct {
	Resource *resource.Resource
	Ref      model.Ref
	// At is its position in run order.
	At int
	// Requires are the required nodes: those of the property require and those that provide a
	// needed path. Subscribes are the nodes of the property subscribe. Subscribers are the nodes
	// that subscribe to this one.
	Requires, Subscribes, Subscribers []*Node
	// RequiresElsewhere and SubscribesElsewhere are references to resources outside the graph:
	// resources of earlier commands of the session, or of manifests that are excluded or not read
	// yet.
	RequiresElsewhere, SubscribesElsewhere []model.Ref
	// Before are all nodes that must run first.
	Before    []*Node
	Relations resource.Relations
	// Children are the resources of the manifest that it includes. Parents are the nodes that
	// include it. Owner is the parent that brought it into the graph.
	Children, Parents []*Node
	Owner             *Node
	// FailFast reports whether its child manifest ends at the first failure.
	FailFast bool
	// Follows marks a subscriber or parent in a part. It runs only after a change of a node that it
	// follows.
	Follows bool

	declared int    // position in the document
	edits    string // the file that it edits together with other resources
	waits    []Edge // edges to it
	after    []*Node
}

// Known reports whether a reference outside the graph is from an earlier command of the session.
// Nil knows none.
type Known func(model.Ref) bool

// Build returns the graph of resources, which are in the order of declaration. It returns the
// model.Problems of resource.CheckLinks: unknown references, duplicate names, cycles.
//
// If a manifest is read during the run, unknown references are allowed, because that manifest may
// declare them. References to resources of excluded manifests are allowed too.
func Build(resources []*resource.Resource, known Known) (*Graph, error) {
	g := &Graph{byRef: make(map[model.Ref]*Node, len(resources))}
	all := make([]resource.Links, 0, len(resources))
	for _, r := range resources {
		if g.add(r) {
			all = append(all, resource.LinksOf(r))
		}
	}
	g.openEnded = slices.ContainsFunc(resources, IsOpenEnded)
	allowed := func(ref model.Ref) bool { return g.openEnded || g.IsExcluded(ref) || (known != nil && known(ref)) }
	if problems := resource.CheckLinks(all, allowed); len(problems) > 0 {
		return nil, problems
	}
	g.connect()
	g.include()
	g.sort(false)
	g.relate()
	g.sort(true)

	return g, nil
}

// Len returns the number of resources.
func (g *Graph) Len() int { return len(g.nodes) }

// Nodes returns the nodes in run order. The caller must not change the slice.
func (g *Graph) Nodes() []*Node { return g.nodes }

// Node returns the node of a reference by name or alias, or nil.
func (g *Graph) Node(ref model.Ref) *Node { return g.byRef[ref] }

// add registers a resource under its name and alias. It returns false for a resource that is
// identical to a registered one.
func (g *Graph) add(r *resource.Resource) bool {
	n := &Node{Resource: r, Ref: r.Ref(), declared: len(g.nodes), edits: editedFile(r)}
	if first, taken := g.byRef[n.Ref]; taken && first.Resource.IsSame(r) {
		return false
	}
	g.nodes = append(g.nodes, n)
	g.byRef[n.Ref] = n
	if alias := r.Meta().Alias; alias != "" {
		g.byRef[model.Ref{Type: n.Ref.Type, Name: alias}] = n
	}

	return true
}

func (g *Graph) connect() {
	for _, n := range g.nodes {
		meta := n.Resource.Meta()
		for _, ref := range meta.Require {
			if dep := g.byRef[ref]; dep != nil {
				n.Requires = append(n.Requires, dep)
				g.edge(dep, n, Edge{Reason: requireReason(n.Resource, ref)})
			} else {
				n.RequiresElsewhere = append(n.RequiresElsewhere, ref)
			}
		}
		for _, ref := range meta.Subscribe {
			if dep := g.byRef[ref]; dep != nil {
				n.Subscribes = append(n.Subscribes, dep)
				dep.Subscribers = append(dep.Subscribers, n)
				g.edge(dep, n, Edge{Reason: "subscribe"})
			} else {
				n.SubscribesElsewhere = append(n.SubscribesElsewhere, ref)
			}
		}
	}
}

// requireReason returns the source of a requirement: the property require, or the function of an
// expression that reads the other resource.
func requireReason(r *resource.Resource, ref model.Ref) string {
	for _, need := range r.Taken {
		if need.Ref == ref {
			return need.Property
		}
	}

	return "require"
}

func (g *Graph) edge(from, to *Node, e Edge) {
	e.From, e.To = from.Ref, to.Ref
	to.waits = append(to.waits, e)
	to.Before = append(to.Before, from)
	from.after = append(from.after, to)
}

// editedFile returns the family and the file of a resource that manages a part of a file, or an empty text.
// Resources with equal results change the file in one write.
func editedFile(r *resource.Resource) string {
	if r.Type.Family == "" || r.ResolveDeferred != nil {
		return ""
	}
	for _, c := range resource.ClaimsOf(r) {
		if c.Kind == resource.ClaimPart {
			return r.Type.Family + ":" + c.Path
		}
	}

	return ""
}

// sort puts the nodes into run order: after their dependencies, otherwise in the order of
// declaration. With byFile, resources that edit one file follow each other if nothing must run
// between them. The graph has no cycles.
func (g *Graph) sort(byFile bool) {
	waiting := make([]int, len(g.nodes)) // by position in the document
	var ready []*Node                    // in the order of declaration
	for _, n := range g.declared() {
		if waiting[n.declared] = len(n.Before); len(n.Before) == 0 {
			ready = append(ready, n)
		}
	}
	order := make([]*Node, 0, len(g.nodes))
	for len(ready) > 0 {
		n := ready[0]
		if beside := sameFile(order, ready); byFile && beside > 0 {
			n = ready[beside]
			ready = slices.Delete(ready, beside, beside+1)
		} else {
			ready = ready[1:]
		}
		n.At = len(order)
		order = append(order, n)
		for _, next := range n.after {
			if waiting[next.declared]--; waiting[next.declared] == 0 {
				at, _ := slices.BinarySearchFunc(ready, next, byDeclaration)
				ready = slices.Insert(ready, at, next)
			}
		}
	}
	g.nodes = order
}

// sameFile returns the position of a ready node that edits the file of the last node in order, or -1.
func sameFile(order, ready []*Node) int {
	if len(order) == 0 || order[len(order)-1].edits == "" {
		return -1
	}

	return slices.IndexFunc(ready, func(n *Node) bool { return n.edits == order[len(order)-1].edits })
}

// Related returns the references of nodes, of all nodes that must run before them, and of all nodes
// that run after them.
func (g *Graph) Related(refs []model.Ref) map[model.Ref]bool {
	var start []*Node
	for _, ref := range refs {
		if n := g.byRef[ref]; n != nil {
			start = append(start, n)
		}
	}
	out := map[model.Ref]bool{}
	for n := range reachable(start, func(n *Node) []*Node { return n.Before }) {
		out[n.Ref] = true
	}
	for n := range reachable(start, func(n *Node) []*Node { return n.after }) {
		out[n.Ref] = true
	}

	return out
}

// reachable returns the nodes of start and all nodes that are reachable from them.
func reachable(start []*Node, next func(*Node) []*Node) map[*Node]bool {
	out := map[*Node]bool{}
	for todo := slices.Clone(start); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !out[n] {
			out[n] = true
			todo = append(todo, next(n)...)
		}
	}

	return out
}

// Step is a resource in run order with the edges that it waits for.
type Step struct {
	Resource *resource.Resource
	// Waits are the edges to the resource: the declared edges in order, then the automatic edges.
	Waits []Edge
	// Elsewhere are the edges from resources outside the graph: resources of earlier commands of
	// the session, or of manifests that are excluded or not read yet. From is the reference as
	// written.
	Elsewhere []Edge
}

// Steps returns the resources in run order. A run deviates from this order only if a resource
// misses something that another resource implicitly creates.
func (g *Graph) Steps() []Step {
	out := make([]Step, len(g.nodes))
	for i, n := range g.nodes {
		out[i].Resource, out[i].Waits = n.Resource, n.waits
		for _, ref := range n.RequiresElsewhere {
			out[i].Elsewhere = append(out[i].Elsewhere, Edge{From: ref, To: n.Ref, Reason: requireReason(n.Resource, ref)})
		}
		for _, ref := range n.SubscribesElsewhere {
			out[i].Elsewhere = append(out[i].Elsewhere, Edge{From: ref, To: n.Ref, Reason: "subscribe"})
		}
	}

	return out
}

// Claims are the resources that the manifests of a node declare, by canonical reference and by path. The
// zero value has none.
type Claims struct {
	byRef map[model.Ref]Claim
	paths resource.PathClaims
	keys  map[*resource.Resource]string
}

// Claim is a resource of the manifest of a key.
type Claim struct {
	Key      string
	Resource *resource.Resource
}

// Conflicts reports the resources that another manifest declares differently. Identical resources
// in two manifests count as one.
func (c Claims) Conflicts(resources []*resource.Resource) model.Problems {
	var out model.Problems
	const remedy = "change that manifest, or remove it with muster fleet rm "
	for _, res := range resources {
		first, taken := c.byRef[res.CanonicalRef()]
		if taken && res.Excluded == "" && !first.Resource.IsSame(res) {
			out.Add(res.Pos, remedy+first.Key, "%s is already declared differently by %s, which is active", res.Ref(), first.Key)
		} else if other, what, _ := c.paths.Conflict(res); other != nil {
			out.Add(res.Pos, remedy+c.keys[other], "%s and %s of %s, which is active, %s", res.Ref(), other.Ref(), c.keys[other], what)
		}
	}

	return out
}

// Add adds the resources of the manifest of a key.
func (c *Claims) Add(key string, resources []*resource.Resource) {
	if c.byRef == nil {
		*c = Claims{map[model.Ref]Claim{}, resource.PathClaims{}, map[*resource.Resource]string{}}
	}
	for _, res := range resources {
		ref := res.CanonicalRef()
		if _, taken := c.byRef[ref]; !taken && res.Excluded == "" {
			c.byRef[ref], c.keys[res] = Claim{key, res}, key
			c.paths.Add(res)
		}
	}
}
