package graph

import (
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Part returns the graph by which a run repairs some resources and leaves the rest
// of g as it stands. It has, beside these:
//   - what provides the paths that they need, and what their late properties are
//     taken from;
//   - those that follow a change of any of these: what subscribes to them or includes
//     them. They get a turn only when it comes to that (Follows).
//
// There is none, and ok is false, where a reference is unknown, or where manifests are
// read during the run, which may declare more that follows.
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
		return nil, false // what is valid as a whole has valid parts
	}
	part.partOf = g
	for _, n := range part.nodes {
		n.Follows = !s.chosen[g.byRef[n.Ref]]
	}

	return part, true
}

// Whole returns the graph that this one is a part of, nil when it is none.
func (g *Graph) PartOf() *Graph { return g.partOf }

// selection collects the nodes of a part.
type selection struct {
	g *Graph
	// chosen are the nodes in the part: true for those that get their turn, false for
	// those that follow. order is how they were found.
	chosen map[*Node]bool
	order  []*Node
}

// take puts a node into the part, with all that it cannot be repaired without.
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

// follow puts those into the part that follow a change of what is in it.
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

// add puts a node into the part that follows others. What it takes values from is
// needed for that.
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

// resources returns those of the part in the order of their declaration.
func (s *selection) resources() []*resource.Resource {
	slices.SortFunc(s.order, func(a, b *Node) int { return a.declared - b.declared })
	out := make([]*resource.Resource, len(s.order))
	for i, n := range s.order {
		out[i] = n.Resource
	}

	return out
}
