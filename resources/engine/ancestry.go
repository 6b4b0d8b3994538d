package engine

import "slices"

// ancestry answers which nodes must run before others, for many questions about
// the same few nodes: asked one by one, they would cost the square of the
// resources. It is told of every edge that is added meanwhile.
type ancestry struct {
	size  int
	known [8]ancestors
	next  int
}

// ancestors are all that must run before a node.
type ancestors struct {
	of *node
	// seen holds, by their place in the document, the turn in which nodes were found.
	seen []int
	turn int
}

func (a *ancestors) has(n *node) bool { return a.seen[n.declared] == a.turn }

// reaches says that to must run after from, or is it.
func (a *ancestry) reaches(from, to *node) bool {
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

func (a *ancestors) find(of *node, size int) {
	if a.seen == nil {
		a.seen = make([]int, size)
	}
	a.of = of
	a.turn++
	for todo := []*node{of}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range n.before {
			if !a.has(p) {
				a.seen[p.declared] = a.turn
				todo = append(todo, p)
			}
		}
	}
}

// added forgets what is not so any more since from must run before to.
func (a *ancestry) added(from, to *node) {
	for i := range a.known {
		if k := &a.known[i]; k.of != nil && (k.of == to || k.has(to)) && !k.has(from) {
			k.of = nil
		}
	}
}
