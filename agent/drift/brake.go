package drift

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// MaxHold is the longest time between two repairs of a resource that flaps.
const MaxHold = 5 * time.Minute

// The looks that find nothing: after so many in a row that follow each other within
// lookWithin the next ones wait, for maxLookHold at most. Somebody writes there all the
// time, and none of it matters.
const (
	idleLooks    = 20
	lookWithin   = time.Second
	firstHold    = time.Second
	maxLookHold  = 30 * time.Second
	maxRemembers = 100 // repairs
)

// brake holds back the repairs of a resource that something else changes again and
// again, and the looks at one that something touches all the time.
type brake struct {
	// repairs are the times of the last ones.
	repairs []time.Time
	// hold is how long the next sighting waits at least after the last run, until until.
	hold  time.Duration
	until time.Time
	// flapping is that repairs are held back, since since.
	flapping bool
	since    time.Time

	// idle counts the looks that found nothing, the last of them at looked.
	idle     int
	looked   time.Time
	lookHold time.Duration
}

// repaired notes a repair, or a try, at a time, and reports whether the resource
// flaps from now on. Limits without a number of repairs hold nothing back.
func (b *brake) repaired(now time.Time, limits model.Flapping) (began bool) {
	if b.idle, b.lookHold = 0, 0; !b.flapping || limits.Repairs == 0 {
		b.until = time.Time{}
	}
	if limits.Repairs == 0 {
		b.flapping, b.repairs = false, nil
		return false
	}
	if b.flapping {
		b.hold = min(2*b.hold, MaxHold)
		b.until = now.Add(b.hold)
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
	b.hold = min(max(within/time.Duration(limits.Repairs), time.Second), MaxHold)
	b.until = now.Add(b.hold)
	b.repairs = nil

	return true
}

// lookedAt notes a look that found nothing to do.
func (b *brake) lookedAt(now time.Time) {
	if now.Sub(b.looked) > lookWithin+b.lookHold {
		b.idle, b.lookHold = 0, 0
	}
	b.looked = now
	if b.idle++; b.idle <= idleLooks {
		return
	}
	b.lookHold = min(max(2*b.lookHold, firstHold), maxLookHold)
	b.until = later(b.until, now.Add(b.lookHold))
}

// calm reports whether a resource that flapped was left alone for long enough: for as
// long as its limits look back, after the last hold. It flaps no more then.
func (b *brake) calm(now time.Time, limits model.Flapping) bool {
	if !b.flapping || now.Before(b.calmAt(limits)) {
		return false
	}
	*b = brake{}

	return true
}

// calmAt returns when a resource that flaps counts as left alone, if nothing is
// repaired before.
func (b *brake) calmAt(limits model.Flapping) time.Time {
	return b.until.Add(max(limits.Within.Std(), time.Second))
}

// isOver reports whether nothing is left to remember of what it counted.
func (b *brake) isOver(now time.Time, limits model.Flapping) bool {
	last := later(b.until, b.looked)
	if n := len(b.repairs); n > 0 {
		last = later(last, b.repairs[n-1].Add(limits.Within.Std()))
	}

	return now.Sub(last) > maxLookHold
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}
