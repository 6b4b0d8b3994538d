package reportcmd

import "github.com/musterfleet/muster/model"

// rememberedReports is how many reports repeats remembers: far more than arrive
// within the two minutes in which a node may send one again.
const rememberedReports = 100_000

// repeats finds reports that were delivered before. The zero value is ready.
type repeats struct {
	seen  map[[2]string]bool
	order [][2]string
}

// seenBefore reports whether seenBefore got this report before.
func (s *repeats) seenBefore(r model.Report) bool {
	id := [2]string{r.Node, r.ID}
	if s.seen[id] {
		return true
	}
	if s.seen == nil {
		s.seen = map[[2]string]bool{}
	}
	s.seen[id] = true
	s.order = append(s.order, id)
	if len(s.order) > rememberedReports {
		delete(s.seen, s.order[0])
		s.order = s.order[1:]
	}

	return false
}
