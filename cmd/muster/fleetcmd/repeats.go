package fleetcmd

import (
	"crypto/sha256"

	"github.com/musterfleet/muster/model"
)

// rememberedReports is the capacity of Repeats: far more reports than arrive in the two minutes in which a
// node may send a report again.
const rememberedReports = 100_000

// Repeats detects repeated reports. The zero value is ready to use.
type Repeats struct {
	seen  map[reportID]bool
	order []reportID
}

// reportID is the digest of the node's name and the id of the report. A node may choose ids of any length.
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
