package reportcmd

import (
	"crypto/sha256"

	"github.com/musterfleet/muster/model"
)

// rememberedReports is how many reports repeats remembers: far more than arrive
// within the two minutes in which a node may send one again.
const rememberedReports = 100_000

// repeats finds reports that were delivered before. The zero value is ready.
type repeats struct {
	seen  map[reportID]bool
	order []reportID
}

// reportID is the digest of a node, which is one token, and an id, which that node may
// choose as long as it likes.
type reportID [sha256.Size]byte

// seenBefore reports whether seenBefore got this report before.
func (s *repeats) seenBefore(r model.Report) bool {
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
