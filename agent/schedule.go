package agent

import (
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// turn is when an active manifest runs.
type turn struct {
	// next is when its interval is over.
	next time.Time
	runs int
	// again spreads the tries of runs that fail before they come to any resource.
	again tasks.Backoff
	// pending is that a change that somebody asked for was not made yet.
	pending bool
}

// schedule is which manifest runs next. Only the loop touches it.
type schedule struct {
	due   due
	turns map[string]*turn
	// pace is this process's share of the jitter. It is the same for all intervals,
	// so that a fleet spreads while the manifests of a node keep their order.
	pace float64
}

// of returns the turn of a manifest.
func (s *schedule) of(key string) *turn {
	t, ok := s.turns[key]
	if !ok {
		t = &turn{}
		s.turns[key] = t
	}

	return t
}

// after returns a time after an interval, which is this process's own.
func (s *schedule) after(interval time.Duration) time.Time {
	return time.Now().Add(s.paced(interval))
}

func (s *schedule) paced(interval time.Duration) time.Duration {
	return time.Duration(s.pace * float64(interval))
}

// take returns the manifest that runs next, in force in this order, and why;
// empty is none.
func (s *schedule) take(order []string, now time.Time) (string, wake) {
	key, w := nextDue(order, s.due, s.turns, now)
	if key == "" {
		clear(s.due) // what is left is not active
	}
	delete(s.due, key)

	return key, w
}

// ran plans the next turn of a manifest; began is that the run came to a resource.
func (s *schedule) ran(key string, interval time.Duration, began bool) {
	t := s.of(key)
	t.next = s.after(interval)
	if began {
		t.again.Reset()
	} else {
		t.next = tasks.Earliest(t.next, time.Now().Add(t.again.Next()))
	}
}

// nextDue returns the first manifest that a run was asked for, else the one whose
// interval has been over for longest: one that takes longer than its interval
// must not keep the others from their turn.
func nextDue(order []string, due due, turns map[string]*turn, now time.Time) (string, wake) {
	oldest := ""
	for _, key := range order {
		if w, asked := due[key]; asked {
			return key, w
		}
		if t := turns[key]; !now.Before(t.next) && (oldest == "" || t.next.Before(turns[oldest].next)) {
			oldest = key
		}
	}
	w := wake{model.CauseSchedule, now}
	if oldest != "" && turns[oldest].pending {
		w.cause = model.CauseManifest
	}

	return oldest, w
}

// isPending reports whether a change that a run was asked for is still to be made
// after it, so that the next run is not one that only looks for drift.
func isPending(cause model.Cause, outcome model.Outcome) bool {
	return !isDone(outcome) && weight(cause) >= weight(model.CauseCommand)
}

// isDone reports whether a run came to its end without a failure.
func isDone(o model.Outcome) bool { return o != model.OutcomeFailed && o != model.OutcomeNotRun }
