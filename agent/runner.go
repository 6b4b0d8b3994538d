package agent

import (
	"context"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// runner does the work of the node, one thing at a time, in one goroutine. Only
// rounds of health checks have their own.
type runner struct {
	*Agent
	units map[string]*unit
	// order are the units in force, in the order in which they run.
	order []*unit
	due   map[string]wake
	// pace is this process's share of the tasks.Jitter. It is the same for all intervals,
	// so that a fleet spreads while the manifests of a node keep their order.
	pace float64
	// problem is what was last said about the bucket.
	problem string
	// invalid are the keys of which it was said that they are none.
	invalid []string
	// refused is what was refused and not told yet.
	refused []turnedDown
	// changes is how often a run or a request changed the machine, or may have.
	changes int
	rounds  sync.WaitGroup
}

// work works until ctx ends. hard outlives it, for what is in hand.
func (r *runner) work(ctx, hard context.Context) {
	defer r.rounds.Wait()
	r.due = map[string]wake{}
	r.awaitFacts(ctx)
	startBy := time.Now().Add(soon)
	adopted := false
	for ctx.Err() == nil {
		w := r.queue.take()
		if w.retry {
			r.retryAll()
		}
		for key, asked := range w.due {
			r.due[key] = asked.over(r.due[key])
		}
		for _, b := range w.rounds {
			r.step("what is known of the health of "+b.unit.key, func() { r.concludeRound(ctx, b) })
		}
		switch now := time.Now(); {
		case !adopted && !r.mayStart(now, startBy):
			if !r.requests.AnswerNext(ctx, hard) {
				r.await(ctx, startBy)
			}
		case !adopted || w.assignments || r.retryDue(now):
			adopted = true
			r.step("looking at the assignments", func() { r.adopt(ctx, now) })
		case r.requests.AnswerNext(ctx, hard):
		case r.runNext(ctx, hard, now):
		case r.beginRounds(ctx, hard, now):
		default:
			r.await(ctx, r.wakeAt())
		}
	}
}

// awaitFacts waits for the first facts, but not for ever.
func (r *runner) awaitFacts(ctx context.Context) {
	timer := time.NewTimer(soon)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		r.log.WarnContext(ctx, "the facts are not there yet, the node starts without them")
	case <-r.facts.ready:
	}
}

// mayStart says that the bucket was read, or that it is not waited for any
// longer, because it is away or does not answer.
func (r *runner) mayStart(now, startBy time.Time) bool {
	_, sync := r.opts.Assignments.Entries()

	return sync.Complete() || len(sync.Kept) > 0 || sync.Err != nil || !now.Before(startBy)
}

// step runs a part of the work; a panic ends that part alone.
func (r *runner) step(what string, f func()) {
	_ = tasks.Guard(r.log, what, func() error { // the guard logs it
		f()
		return nil
	})
}

// await waits for a wake, or a time.
func (r *runner) await(ctx context.Context, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-r.queue.slot:
	}
}

// retryAll makes everything that may pass due now.
func (r *runner) retryAll() {
	now := time.Now()
	for _, u := range r.units {
		if !u.retryAt.IsZero() {
			u.retryAt = now
			u.wait.Reset()
		}
	}
}

// retryDue says that something may be otherwise now: an error may have passed,
// or an assignment expired.
func (r *runner) retryDue(now time.Time) bool {
	for _, u := range r.units {
		if !u.retryAt.IsZero() && !now.Before(u.retryAt) {
			return true
		}
		if u.current != nil && u.current.expired(now) {
			return true
		}
	}

	return false
}

// runNext runs the first manifest that is due; false means that none is.
func (r *runner) runNext(ctx, hard context.Context, now time.Time) bool {
	u, w := r.nextDue(now)
	if u == nil {
		clear(r.due) // what is left is not in force
		return false
	}
	delete(r.due, u.key)
	began := r.run(ctx, hard, u, w)
	u.next = r.nextTurn(u)
	if began {
		u.again.Reset()
	} else {
		u.next = tasks.Earliest(u.next, time.Now().Add(u.again.Next()))
	}

	return true
}

// nextDue gives the first manifest that a run was asked for, else the one whose
// interval has been over for longest: one that takes longer than its interval
// must not keep the others from their turn.
func (r *runner) nextDue(now time.Time) (*unit, wake) {
	var oldest *unit
	for _, u := range r.order {
		if w, asked := r.due[u.key]; asked {
			return u, w
		}
		if !now.Before(u.next) && (oldest == nil || u.next.Before(oldest.next)) {
			oldest = u
		}
	}
	w := wake{model.CauseSchedule, now}
	if oldest != nil && oldest.asked {
		w.cause = model.CauseManifest
	}

	return oldest, w
}

// intervalOf gives how often a unit is looked at.
func (r *runner) intervalOf(u *unit) time.Duration {
	d := r.Config().Interval.Std()
	if u.current != nil && u.current.interval > 0 {
		d = u.current.interval
	}

	return d
}

// nextTurn gives when a unit that ran just now is due again.
func (r *runner) nextTurn(u *unit) time.Time {
	return time.Now().Add(time.Duration(r.pace * float64(r.intervalOf(u))))
}

// wakeAt gives when something is due by itself.
func (r *runner) wakeAt() time.Time {
	at := time.Now().Add(time.Hour)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	for _, u := range r.units {
		earlier(u.retryAt)
		if u.current != nil {
			earlier(u.current.Expires)
		}
	}
	for _, u := range r.order {
		earlier(u.next)
		earlier(r.roundAt(u))
	}

	return at
}
