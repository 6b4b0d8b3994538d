package webhook

import "time"

// Shares say how much each node may have: so many at once, and one more after a while. The clock is that of
// the caller. Make it with NewShares.
type Shares struct {
	most  float64
	every time.Duration
	nodes map[string]share
	// prune is with how many nodes those are forgotten that have their whole share.
	prune int
}

// share is what a node had left at a time.
type share struct {
	left float64
	at   time.Time
}

// minPruned is how many nodes are remembered at least.
const minPruned = 1000

// NewShares returns shares of at most so many, of which one more is there after each such while.
func NewShares(most int, every time.Duration) *Shares {
	return &Shares{most: float64(most), every: every, nodes: map[string]share{}, prune: minPruned}
}

// Take takes one of the share of a node at a time, and reports whether there was one left.
func (s *Shares) Take(node string, at time.Time) bool {
	one, known := s.nodes[node]
	if !known {
		one = share{s.most, at}
		s.forget(at)
	}
	if one = s.now(one, at); one.left < 1 {
		s.nodes[node] = one
		return false
	}
	one.left--
	s.nodes[node] = one

	return true
}

// now returns a share as it is at a time. Of one that is earlier than the last nothing is added.
func (s *Shares) now(one share, at time.Time) share {
	if since := at.Sub(one.at); since > 0 {
		one.left, one.at = min(one.left+float64(since)/float64(s.every), s.most), at
	}

	return one
}

// forget forgets the nodes that have their whole share again, once there are many.
func (s *Shares) forget(at time.Time) {
	if len(s.nodes) < s.prune {
		return
	}
	for node, one := range s.nodes {
		if s.now(one, at).left >= s.most {
			delete(s.nodes, node)
		}
	}
	s.prune = max(2*len(s.nodes), minPruned)
}
