package requests

import (
	"sync/atomic"

	"github.com/musterfleet/muster/model"
)

// Ended counts the requests that ended since Open, by result. A rejected request was not accepted, or
// a restart lost it before it began.
type Ended struct {
	Done, Failed, Expired, Cancelled, Rejected uint64
}

// Ended returns the current counts.
func (s *Service) Ended() Ended {
	e := &s.responder.ended

	return Ended{Done: e.done.Load(), Failed: e.failed.Load(), Expired: e.expired.Load(), Cancelled: e.cancelled.Load(), Rejected: e.rejected.Load()}
}

// endings counts the requests that ended.
type endings struct {
	done, failed, expired, cancelled, rejected atomic.Uint64
}

// count counts an accepted request by its final phase.
func (e *endings) count(phase model.EnsurePhase) {
	switch phase {
	case model.EnsureDone:
		e.done.Add(1)
	case model.EnsureExpired:
		e.expired.Add(1)
	case model.EnsureCancelled:
		e.cancelled.Add(1)
	default:
		e.failed.Add(1)
	}
}
