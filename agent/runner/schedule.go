package runner

import (
	"maps"
	"math/rand/v2"
	"slices"
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
	// postponed is why it would have run before.
	postponed Wake
}

// Schedule is which manifest runs next, for one goroutine. Make it with New.
type Schedule struct {
	due   due
	turns map[string]*turn
	// pace is this process's share of the jitter. It is the same for all intervals,
	// so that a fleet spreads while the manifests of a node keep their order.
	pace float64
	// pending is status.Results.Pending.
	pending func(key string) (pending, failed bool)
}

// due are the manifests that a run was asked for: of all of one, or of a part. What asks for
// both is kept apart, since the part may be able to run when the whole cannot.
type due struct{ whole, part map[string]Wake }

// May reports whether a manifest may run now, of which part is nil, or a part of it: as far as now
// has its resources. What may not stays due.
type May func(key string, part []model.Ref) (now []model.Ref, ok bool)

// of returns why a manifest is due that may run or not; nothing where it is not.
func (d due) of(key string, may May) (w Wake, asked bool) {
	whole, byWhole := d.whole[key]
	part, byPart := d.part[key]
	if byWhole {
		if _, ok := may(key, nil); ok {
			return whole.over(part), true
		}
	}
	if byPart && !(byWhole && isRequested(whole.Cause)) {
		part.Part, asked = may(key, part.Part)
	}
	if !asked {
		return Wake{}, false
	}

	return part, true
}

// remove removes what a run is for that of returned.
func (d due) remove(key string, w Wake) {
	if w.Part == nil {
		delete(d.part, key)
		delete(d.whole, key)
		return
	}
	rest := d.part[key]
	rest.Part = slices.DeleteFunc(slices.Clone(rest.Part), func(ref model.Ref) bool { return slices.Contains(w.Part, ref) })
	if d.part[key] = rest; len(rest.Part) == 0 {
		delete(d.part, key)
	}
}

// retain drops what is not active.
func (d due) retain(active []string) {
	inactive := func(key string, _ Wake) bool { return !slices.Contains(active, key) }
	maps.DeleteFunc(d.whole, inactive)
	maps.DeleteFunc(d.part, inactive)
}

// New returns a schedule without manifests.
func NewSchedule(pending func(key string) (pending, failed bool)) *Schedule {
	return &Schedule{pending: pending, due: due{map[string]Wake{}, map[string]Wake{}}, turns: map[string]*turn{}, pace: 1 + tasks.Jitter*(2*rand.Float64()-1)}
}

// Ask asks for a run of a manifest, which is due since a time.
func (s *Schedule) Ask(key string, cause model.Cause, at time.Time) {
	s.AskPart(key, cause, at, nil)
}

// AskPart asks for a run of some resources of a manifest; nil is all of it.
func (s *Schedule) AskPart(key string, cause model.Cause, at time.Time, part []model.Ref) {
	s.AskFor(key, Wake{Cause: cause, At: at, Part: part})
}

// AskFor asks for a run of a manifest, or of a part, for a reason.
func (s *Schedule) AskFor(key string, w Wake) {
	of := s.due.whole
	if w.Part != nil {
		of = s.due.part
	}
	of[key] = w.over(of[key])
}

// Cause returns what a manifest would run for now.
func (s *Schedule) Cause(key string) model.Cause {
	w := Wake{Cause: model.CauseSchedule}
	t := s.turns[key]
	if pending, _ := s.pending(key); pending {
		w.Cause = model.CauseManifest
	}
	if asked, is := s.due.of(key, func(_ string, part []model.Ref) ([]model.Ref, bool) { return part, true }); is {
		w = asked
	}
	if t != nil {
		w = w.over(t.postponed)
	}

	return w.Cause
}

// Next returns when the interval of a manifest is over.
func (s *Schedule) Next(key string) time.Time { return s.of(key).next }

// Within has a manifest run within an interval from now: one that became shorter
// holds at once.
func (s *Schedule) Within(key string, interval time.Duration) {
	t := s.of(key)
	t.next = model.EarlierTime(t.next, s.after(interval))
}

// Resume has a manifest run at a time, unless it runs before; zero is not.
func (s *Schedule) Resume(key string, at time.Time) {
	t := s.of(key)
	t.next = model.EarlierNonZero(at, t.next)
}

// Forget drops a manifest that is not assigned any more.
func (s *Schedule) Forget(key string) {
	delete(s.turns, key)
	s.due.remove(key, Wake{})
}

// Begin counts the runs of a manifest, and returns which one begins now.
func (s *Schedule) Begin(key string) int {
	t := s.of(key)
	t.runs++

	return t.runs
}

// of returns the turn of a manifest.
func (s *Schedule) of(key string) *turn {
	t, ok := s.turns[key]
	if !ok {
		t = &turn{}
		s.turns[key] = t
	}

	return t
}

// after returns a time after an interval, which is this process's own.
func (s *Schedule) after(interval time.Duration) time.Time {
	return time.Now().Add(s.Paced(interval))
}

// Paced returns an interval as this process keeps it.
func (s *Schedule) Paced(interval time.Duration) time.Duration {
	return time.Duration(s.pace * float64(interval))
}

// Take returns the manifest that runs next, in force in this order, and why; empty is none.
func (s *Schedule) Take(order []string, now time.Time, may May) (string, Wake) {
	key, w := s.nextDue(order, now, may)
	if key == "" {
		s.due.retain(order)
	}
	s.due.remove(key, w)
	if t := s.turns[key]; t != nil && w.Part == nil {
		w, t.postponed = w.over(t.postponed), Wake{}
	}

	return key, w
}

// Postpone has a manifest that was taken wait, a while at most: it runs for the same
// reason then.
func (s *Schedule) Postpone(key string, w Wake) {
	t := s.of(key)
	t.postponed, t.next = w.over(t.postponed), time.Now().Add(t.again.Next())
}

// Ran plans the next turn of a manifest; began is that the run came to a resource.
func (s *Schedule) Ran(key string, interval time.Duration, began bool) {
	t := s.of(key)
	t.next = s.after(interval)
	if began {
		t.again.Reset()
	} else {
		s.Retry(key)
	}
}

// Retry has a manifest run soon, and later each time it is called in a row, unless it runs
// before.
func (s *Schedule) Retry(key string) {
	t := s.of(key)
	t.next = model.EarlierTime(t.next, time.Now().Add(t.again.Next()))
}

// nextDue returns the first manifest that a run was asked for, else the one whose
// interval has been over for longest: one that takes longer than its interval
// must not keep the others from their turn.
func (s *Schedule) nextDue(order []string, now time.Time, may May) (string, Wake) {
	oldest := ""
	for _, key := range order {
		if w, asked := s.due.of(key, may); asked {
			return key, w
		}
		if t := s.turns[key]; !now.Before(t.next) && (oldest == "" || t.next.Before(s.turns[oldest].next)) {
			if _, ok := may(key, nil); ok {
				oldest = key
			}
		}
	}
	w := Wake{Cause: model.CauseSchedule, At: now}
	if pending, failed := s.pending(oldest); pending {
		w.Cause, w.Retry = model.CauseManifest, failed
	}

	return oldest, w
}

// isRequested reports whether somebody asked for the change, so that the desired state may
// never have been there: a part of it alone would take the rest for done.
func isRequested(cause model.Cause) bool { return weight(cause) >= weight(model.CauseRequest) }
