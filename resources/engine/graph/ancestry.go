package graph

import "slices"

// ancestry answers which nodes must run before others. It caches the ancestors of a few nodes,
// because walking the graph for each question would cost the square of the number of resources. The
// caller reports every edge that it adds.
type ancestry struct {
	size  int
	known [8]ancestors
	next  int
}

// ancestors are all nodes that must run before a node.
type ancestors struct {
	of *Node
	// seen stores, by position in the document, the number of the walk that found a node.
	seen []int
	walk int
}

func (a *ancestors) has(n *Node) bool { return a.seen[n.declared] == a.walk }

// reaches reports whether from must run before to, or is the same node.
func (a *ancestry) reaches(from, to *Node) bool {
	if from == to {
		return true
	}
	at := slices.IndexFunc(a.known[:], func(k ancestors) bool { return k.of == to })
	if at < 0 {
		at = a.next
		a.next = (a.next + 1) % len(a.known)
		a.known[at].find(to, a.size)
	}

	return a.known[at].has(from)
}

func (a *ancestors) find(of *Node, size int) {
	if a.seen == nil {
		a.seen = make([]int, size)
	}
	a.of = of
	a.walk++
	for todo := []*Node{of}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range n.Before {
			if !a.has(p) {
				a.seen[p.declared] = a.walk
				todo = append(todo, p)
			}
		}
	}
}

// added drops the cached answers that a new edge between from and to invalidates.
func (a *ancestry) added(from, to *Node) {
	for i := range a.known {
		if k := &a.known[i]; k.of != nil && (k.of == to || k.has(to)) && !k.has(from) {
			k.of = nil
		}
	}
}
