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

// checkEvery is how often the writers of a resource that flaps are checked until one is known,
// and tellWithin for how long: the last write may have been the one before.
const (
	checkEvery = time.Second
	tellWithin = 10 * time.Second
)

// maxListeners bounds the resources whose writers are looked for at a time.
const maxListeners = 8

// Writers notes who writes some files, until it is closed. Its texts are hints, safe to
// show and bounded.
type Writers interface {
	// Seen returns who was seen, the latest first.
	Seen() []string
	Close()
}

// flap is that a resource flaps.
type flap struct {
	state model.FlappingState
	// writers is nil where nobody is looked for, or not any more.
	writers Writers
	// tellBy is when it is told at the latest; zero once it was. checkAt is when the
	// writers are checked next: they are known a moment after their writes.
	tellBy, checkAt time.Time
}

// isTold reports whether Options.Flapping was called.
func (f *flap) isTold() bool { return f.tellBy.IsZero() }

// check looks who writes, and reports whether it is due to be reported: the writer is known,
// or was looked for for long enough.
func (f *flap) check(now time.Time) bool {
	if f.isTold() {
		return false
	}
	var seen []string
	if f.writers != nil {
		seen = f.writers.Seen()
	}
	if len(seen) == 0 && now.Before(f.tellBy) {
		f.checkAt = now.Add(checkEvery)
		return false
	}
	f.state.Writer, f.tellBy = strings.Join(seen[:min(len(seen), 3)], ", "), time.Time{}
	f.close()

	return true
}

// next returns when check may have something to tell; zero is never.
func (f *flap) next() time.Time {
	if !f.isTold() && f.writers != nil && f.checkAt.Before(f.tellBy) {
		return f.checkAt
	}

	return f.tellBy
}

func (f *flap) close() {
	if f.writers != nil {
		f.writers.Close()
		f.writers = nil
	}
}

// flapping are the resources that flap.
type flapping struct {
	o   *Options
	all map[id]*follower
}

// begin has a resource flap: until ctx ends it is noted who writes it.
func (l *flapping) begin(ctx context.Context, i id, f *follower, now time.Time) {
	f.flap = &flap{state: model.FlappingState{Manifest: i.key, Resource: i.ref, Since: f.backoff.since.UTC(), Unit: f.unit()}, tellBy: now.Add(tellWithin), checkAt: now}
	if paths := f.paths(); l.o.Listen != nil && len(paths) > 0 && l.listening() < maxListeners {
		if w, err := l.o.Listen(ctx, paths); err == nil {
			f.flap.writers = w
		}
	}
	l.all[i] = f
}

// listening returns of how many the writers are looked for.
func (l *flapping) listening() (count int) {
	for _, f := range l.all {
		if f.flap.writers != nil {
			count++
		}
	}

	return count
}

// told returns those that were told, in a fixed order.
func (l *flapping) told() []model.FlappingState {
	var out []model.FlappingState
	for _, i := range slices.SortedFunc(maps.Keys(l.all), id.compare) {
		if f := l.all[i]; f.flap.isTold() {
			out = append(out, f.flap.state)
		}
	}

	return out
}

// tell tells which resources flap, once their writers are known or were looked for
// for long enough, and which were left alone since. limits returns those of a manifest.
func (l *flapping) tell(now time.Time, limits func(key string) model.Flapping) {
	for _, i := range slices.SortedFunc(maps.Keys(l.all), id.compare) {
		f := l.all[i]
		switch flap := f.flap; {
		case f.backoff.calm(now, limits(i.key)):
			if l.end(i, f); flap.isTold() {
				l.o.Calm(flap.state)
			}
		case flap.check(now):
			l.o.Flapping(flap.state)
		}
	}
}

// end ends that a resource flaps, if it does, without telling.
func (l *flapping) end(i id, f *follower) {
	if f.flap != nil {
		f.flap.close()
		f.flap = nil
		delete(l.all, i)
	}
}

// next returns when tell may have something to tell; zero is never.
func (l *flapping) next(limits func(key string) model.Flapping) (next time.Time) {
	for i, f := range l.all {
		next = model.EarlierNonZero(next, f.backoff.calmAt(limits(i.key)))
		next = model.EarlierNonZero(next, f.flap.next())
	}

	return next
}

// Repaired notes that drift of a resource was repaired, or that this failed. A try that is
// made again because the last one failed does not count: somebody else had no part in it. One
// that is repaired too often flaps from now on: its repairs are further and further apart until
// it is left alone, and until ctx ends it is noted who writes it.
func (m *Monitor) Repaired(ctx context.Context, key string, ref model.Ref, now time.Time) {
	f := m.of(key).resources[ref]
	if f != nil && !f.retry.retried && f.backoff.repaired(now, m.limits(key)) {
		m.flapping.begin(ctx, id{key, ref}, f, now)
	}
}

// paths are where a resource is watched, units aside.
func (f *follower) paths() (out []string) {
	for _, p := range f.points {
		if p.Kind != watch.Unit {
			out = append(out, p.Name)
		}
	}

	return out
}

// unit is that of a resource, empty for one without.
func (f *follower) unit() string {
	for _, p := range f.points {
		if p.Kind == watch.Unit {
			return p.Name
		}
	}

	return ""
}

// NothingDue notes that drift of a resource was looked for, and there was nothing to do.
func (m *Monitor) NothingDue(key string, ref model.Ref, now time.Time) {
	if f := m.of(key).resources[ref]; f != nil {
		f.backoff.nothingDue(now)
	}
}

// Flapping returns the resources that flap and were told, in a fixed order.
func (m *Monitor) Flapping() []model.FlappingState { return m.flapping.told() }

// limits returns those of the flapping of a manifest.
func (m *Monitor) limits(key string) model.Flapping { return m.of(key).limits }
