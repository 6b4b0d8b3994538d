package drift

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// MaxDelay is the longest time between two repairs of a resource that flaps.
const MaxDelay = 5 * time.Minute

// The checks that find nothing: after so many in a row that follow each other within
// checkWithin the next ones are delayed, for maxIdleDelay at most. Somebody writes there all
// the time, and none of it matters.
const (
	idleChecks     = 20
	checkWithin    = time.Second
	firstIdleDelay = time.Second
	maxIdleDelay   = 30 * time.Second
	maxRemembers   = 100 // repairs
)

// backoff delays the repairs of a resource that something else changes again and again,
// and the checks of one that something touches all the time.
type backoff struct {
	// repairs are the times of the last ones.
	repairs []time.Time
	// delay is how long the next event waits at least after the last run, until until.
	delay time.Duration
	until time.Time
	// flapping is that repairs are delayed, since since.
	flapping bool
	since    time.Time

	// idle counts the checks that found nothing, the last of them at checked.
	idle      int
	checked   time.Time
	idleDelay time.Duration
}

// repaired notes a repair, or a try, at a time, and reports whether the resource
// flaps from now on. Limits without a number of repairs delay nothing.
func (b *backoff) repaired(now time.Time, limits model.Flapping) (began bool) {
	if b.idle, b.idleDelay = 0, 0; !b.flapping || limits.Repairs == 0 {
		b.until = time.Time{}
	}
	if limits.Repairs == 0 {
		b.flapping, b.repairs = false, nil
		return false
	}
	if b.flapping {
		b.delay = min(2*b.delay, MaxDelay)
		b.until = now.Add(b.delay)
		return false
	}
	b.repairs = append(b.repairs, now)
	most := min(limits.Repairs, maxRemembers)
	if len(b.repairs) > most+1 {
		b.repairs = b.repairs[len(b.repairs)-most-1:]
	}
	within := limits.Within.Std()
	if len(b.repairs) <= most || now.Sub(b.repairs[0]) > within {
		return false
	}
	b.flapping, b.since = true, now
	b.delay = min(max(within/time.Duration(limits.Repairs), time.Second), MaxDelay)
	b.until = now.Add(b.delay)
	b.repairs = nil

	return true
}

// nothingDue notes a check that found nothing to do.
func (b *backoff) nothingDue(now time.Time) {
	if now.Sub(b.checked) > checkWithin+b.idleDelay {
		b.idle, b.idleDelay = 0, 0
	}
	b.checked = now
	if b.idle++; b.idle <= idleChecks {
		return
	}
	b.idleDelay = min(max(2*b.idleDelay, firstIdleDelay), maxIdleDelay)
	b.until = model.LaterTime(b.until, now.Add(b.idleDelay))
}

// calm reports whether a resource that flapped was left alone for long enough: for as
// long as its limits look back, after the last delay. It flaps no more then.
func (b *backoff) calm(now time.Time, limits model.Flapping) bool {
	if !b.flapping || now.Before(b.calmAt(limits)) {
		return false
	}
	*b = backoff{}

	return true
}

// calmAt returns when a resource that flaps counts as left alone, if nothing is
// repaired before.
func (b *backoff) calmAt(limits model.Flapping) time.Time {
	return b.until.Add(max(limits.Within.Std(), time.Second))
}
