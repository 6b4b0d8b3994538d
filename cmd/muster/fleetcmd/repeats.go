package fleetcmd

import (
	"crypto/sha256"

	"github.com/musterfleet/muster/model"
)

// rememberedReports is how many reports Repeats remembers: far more than arrive
// within the two minutes in which a node may send one again.
const rememberedReports = 100_000

// Repeats finds reports that were delivered before. The zero value is ready.
type Repeats struct {
	seen  map[reportID]bool
	order []reportID
}

// reportID is the digest of a node, which is one token, and an id, which that node may
// choose as long as it likes.
type reportID [sha256.Size]byte

// SeenBefore reports whether it was called with this report before.
func (s *Repeats) SeenBefore(r model.Report) bool {
	id := reportID(sha256.Sum256([]byte(r.Node + " " + r.ID)))
	if s.seen[id] {
		return true
	}
	if s.seen == nil {
		s.seen = map[reportID]bool{}
	}
	s.seen[id] = true
	s.order = append(s.order, id)
	if len(s.order) > rememberedReports {
		delete(s.seen, s.order[0])
		s.order = s.order[1:]
	}

	return false
}
