package drift

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// MaxDelay limits the delay of the repairs of a resource that flaps.
const MaxDelay = 5 * time.Minute

// After idleChecks checks within checkWithin of each other that find nothing, the next checks are delayed,
// for at most maxIdleDelay: some program writes there all the time without an effect.
const (
	idleChecks     = 20
	checkWithin    = time.Second
	firstIdleDelay = time.Second
	maxIdleDelay   = 30 * time.Second
	maxRemembers   = 100 // repairs
)

// backoff delays the repairs of a resource that flaps, and the checks of a resource with many events.
type backoff struct {
	// repairs holds the times of the last repairs.
	repairs []time.Time
	// delay is the minimal wait of the next event after the last run. It ends at until.
	delay time.Duration
	until time.Time
	// flapping reports whether repairs are delayed; since is its start.
	flapping bool
	since    time.Time

	// idle counts the checks that found nothing. checked is the time of the last one.
	idle      int
	checked   time.Time
	idleDelay time.Duration
}

// repaired records a repair attempt. It reports whether the resource begins to flap. Limits without a
// number of repairs delay nothing.
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

// nothingDue records a check that found nothing.
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

// calm reports whether a resource no longer flaps, and resets the backoff then: nothing changed the
// resource for the period of its limits after the last delay.
func (b *backoff) calm(now time.Time, limits model.Flapping) bool {
	if !b.flapping || now.Before(b.calmAt(limits)) {
		return false
	}
	*b = backoff{}

	return true
}

// calmAt returns when a resource no longer flaps if it needs no repair before.
func (b *backoff) calmAt(limits model.Flapping) time.Time {
	return b.until.Add(max(limits.Within.Std(), time.Second))
}
