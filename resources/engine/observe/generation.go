package observe

import (
	"sync"

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
func Parallel(count, limit int, f func(i int)) {
	slots := make(chan struct{}, limit)
	var all sync.WaitGroup
	for i := range count {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}
