package webhook

import (
	"time"

	"golang.org/x/time/rate"
)

// Shares limit the reports of each node: a number at once, and one more after each interval. The caller passes the time.
// Create them with NewShares.
type Shares struct {
	most  int
	every time.Duration
	nodes map[string]*rate.Limiter
	// prune is the number of nodes at which Take forgets nodes with a full share.
	prune int
}

// minPruned is the number of nodes that Shares remember at least.
const minPruned = 1000

// NewShares returns shares of at most so many reports, which grow by one after each interval.
func NewShares(most int, every time.Duration) *Shares {
	return &Shares{most: most, every: every, nodes: map[string]*rate.Limiter{}, prune: minPruned}
}

// Take takes one report from the share of a node and reports whether there was one left.
func (s *Shares) Take(node string, at time.Time) bool {
	one := s.nodes[node]
	if one == nil {
		s.forget(at)
		one = rate.NewLimiter(rate.Every(s.every), s.most)
		s.nodes[node] = one
	}

	return one.AllowN(at, 1)
}

// forget forgets the nodes with a full share, if there are many nodes.
func (s *Shares) forget(at time.Time) {
	if len(s.nodes) < s.prune {
		return
	}
	for node, one := range s.nodes {
		if one.TokensAt(at) >= float64(s.most) {
			delete(s.nodes, node)
		}
	}
	s.prune = max(2*len(s.nodes), minPruned)
}
