package drift

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
)

// checkEvery is the interval between checks for writers of a resource that flaps. reportWithin limits their
// duration, because the last write may be over.
const (
	checkEvery   = time.Second
	reportWithin = 10 * time.Second
)

// maxListeners limits the resources with a search for writers.
const maxListeners = 8

// Writers observes which programs write some files, until Close. Its texts are hints that are safe to show
// and bounded.
type Writers interface {
	// Seen returns the observed writers, latest first.
	Seen() []string
	Close()
}

type flap struct {
	state model.FlappingState
	// writers is nil without a search for writers.
	writers Writers
	// Flaps returns the flap at reportBy at the latest, and then sets reportBy to zero. checkAt is the time of
	// the next check for writers, which are known shortly after their writes.
	reportBy, checkAt time.Time
}

func (f *flap) isReported() bool { return f.reportBy.IsZero() }

// check looks for writers. It reports whether the resource counts as flapping from now on: a writer is known,
// or the search is over.
func (f *flap) check(now time.Time) bool {
	if f.isReported() {
		return false
	}
	var seen []string
	if f.writers != nil {
		seen = f.writers.Seen()
	}
	if len(seen) == 0 && now.Before(f.reportBy) {
		f.checkAt = now.Add(checkEvery)
		return false
	}
	f.state.Writer, f.reportBy = strings.Join(seen[:min(len(seen), 3)], ", "), time.Time{}
	f.close()

	return true
}

// next returns the time of the next check, zero for none.
func (f *flap) next() time.Time {
	if !f.isReported() && f.writers != nil && f.checkAt.Before(f.reportBy) {
		return f.checkAt
	}

	return f.reportBy
}

func (f *flap) close() {
	if f.writers != nil {
		f.writers.Close()
		f.writers = nil
	}
}

// beginFlapping adds a resource that flaps and searches for its writers until ctx ends.
func (m *Monitor) beginFlapping(ctx context.Context, i id, f *follower, now time.Time) {
	f.flap = &flap{state: model.FlappingState{Manifest: i.key, Resource: i.ref, Since: f.backoff.since.UTC(), Unit: f.unit()}, reportBy: now.Add(reportWithin), checkAt: now}
	listening := 0
	for _, other := range m.flapping {
		if other.flap.writers != nil {
			listening++
		}
	}
	if paths := f.paths(); m.o.Listen != nil && len(paths) > 0 && listening < maxListeners {
		if w, err := m.o.Listen(ctx, paths); err == nil {
			f.flap.writers = w
		}
	}
	m.flapping[i] = f
}

func (m *Monitor) endFlapping(i id, f *follower) {
	if f.flap != nil {
		f.flap.close()
		f.flap = nil
		delete(m.flapping, i)
	}
}

// Flaps returns the resources that flap since the last call, once their writers are known or the search is
// over, and the ones that no longer do. It returns none that is no longer followed.
func (m *Monitor) Flaps(now time.Time) (began, ended []model.FlappingState) {
	for _, i := range m.sortedFlapping() {
		f := m.flapping[i]
		switch flap := f.flap; {
		case f.backoff.calm(now, m.of(i.key).limits):
			if m.endFlapping(i, f); flap.isReported() {
				ended = append(ended, flap.state)
			}
		case flap.check(now):
			began = append(began, flap.state)
		}
	}

	return began, ended
}

func (m *Monitor) sortedFlapping() []id { return slices.SortedFunc(maps.Keys(m.flapping), id.compare) }

// Flapping returns the resources that Flaps returned and that still flap, sorted.
func (m *Monitor) Flapping() (out []model.FlappingState) {
	for _, i := range m.sortedFlapping() {
		if flap := m.flapping[i].flap; flap.isReported() {
			out = append(out, flap.state)
		}
	}

	return out
}

func (f *follower) paths() (out []string) {
	for _, p := range f.points {
		if p.Kind != watch.Unit {
			out = append(out, p.Name)
		}
	}

	return out
}

func (f *follower) unit() string {
	for _, p := range f.points {
		if p.Kind == watch.Unit {
			return p.Name
		}
	}

	return ""
}

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
