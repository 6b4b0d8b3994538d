package engine

import (
	"sync"
	"sync/atomic"

	"github.com/musterfleet/muster/resources/resource"
)

// generations remembers when each domain was last changed, counted in changes.
type generations struct {
	now  int
	last [8]int
}

// Changed makes the observations of domains invalid.
func (g *generations) Changed(domains resource.Domain) {
	g.now++
	for bit := range g.last {
		if domains.Overlaps(1 << bit) {
			g.last[bit] = g.now
		}
	}
}

// isValid reports whether nothing has changed in domains since an observation.
func (g *generations) isValid(s *observation, domains resource.Domain) bool {
	if !s.taken {
		return false
	}
	for bit := range g.last {
		if domains.Overlaps(1<<bit) && g.last[bit] > s.generation {
			return false
		}
	}

	return true
}

// Parallel calls f with every number below count, for at most limit of them at the
// same time, and returns when all calls have.
func parallel(count, limit int, f func(i int)) {
	if count == 1 {
		f(0) // no other goroutine has to be woken for it
		return
	}
	var all sync.WaitGroup
	var begun atomic.Int64
	for range min(count, limit) {
		all.Go(func() {
			for i := int(begun.Add(1)) - 1; i < count; i = int(begun.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}
