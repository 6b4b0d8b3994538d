package plan

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Part returns the graph for repairing some resources without the rest of g. It also contains:
//   - the providers of paths that these resources need, and the resources whose outputs they use;
//   - the subscribers and parents of these. They run only after a change of a node that they follow
//     (Follows).
//
// It returns false for an unknown reference, and for an open-ended graph, because an unread
// manifest may declare more subscribers.
func (g *Graph) Part(refs []model.Ref) (part *Graph, ok bool) {
	if g.openEnded {
		return nil, false
	}
	s := selection{g: g, chosen: map[*Node]bool{}}
	for _, ref := range refs {
		n := g.byRef[ref]
		if n == nil {
			return nil, false
		}
		s.take(n)
	}
	s.follow()
	part, err := Build(s.resources(), func(model.Ref) bool { return true })
	if err != nil {
		return nil, false // a part of a valid graph is valid
	}
	part.partOf = g
	for _, n := range part.nodes {
		n.Follows = !s.chosen[g.byRef[n.Ref]]
	}

	return part, true
}

// PartOf returns the graph that this graph is a part of, or nil.
func (g *Graph) PartOf() *Graph { return g.partOf }

type selection struct {
	g *Graph
	// chosen maps a node of the part to true if it runs, and to false if it follows. order is the
	// order of discovery.
	chosen map[*Node]bool
	order  []*Node
}

// take adds a node with everything that its repair needs.
func (s *selection) take(n *Node) {
	if s.chosen[n] {
		return
	}
	if _, follows := s.chosen[n]; !follows {
		s.order = append(s.order, n)
	}
	s.chosen[n] = true
	for _, need := range n.Relations.Needs {
		for _, p := range s.g.Providers[need.What] {
			if need.IsGate() && slices.Contains(n.Requires, p) {
				s.take(p)
			}
		}
	}
	for _, need := range n.Resource.Taken {
		if from := s.g.byRef[need.Ref]; from != nil {
			s.take(from)
		}
	}
}

func (s *selection) follow() {
	for i := 0; i < len(s.order); i++ {
		n := s.order[i]
		for _, f := range n.Subscribers {
			s.add(f)
		}
		for _, p := range n.Parents {
			s.add(p)
		}
	}
}

// add adds a node that follows others, with the resources whose outputs it uses.
func (s *selection) add(n *Node) {
	if _, known := s.chosen[n]; known || n.Resource.Excluded != "" {
		return
	}
	s.chosen[n] = false
	s.order = append(s.order, n)
	for _, need := range n.Resource.Taken {
		if from := s.g.byRef[need.Ref]; from != nil {
			s.take(from)
		}
	}
}

func (s *selection) resources() []*resource.Resource {
	slices.SortFunc(s.order, byDeclaration)
	out := make([]*resource.Resource, len(s.order))
	for i, n := range s.order {
		out[i] = n.Resource
	}

	return out
}
