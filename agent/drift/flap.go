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

// Repaired notes that drift of a resource was repaired, or that this failed. A try that is
// made again because the last one failed does not count: somebody else had no part in it. One
// that is repaired too often flaps from now on: its repairs are further and further apart until
// it is left alone, and until ctx ends it is noted who writes it.
func (m *Monitor) Repaired(ctx context.Context, key string, ref model.Ref, now time.Time) {
	f := m.of(key).resources[ref]
	if f == nil || f.retry.retried || !f.backoff.repaired(now, m.of(key).limits) {
		return
	}
	f.flap = &flap{state: model.FlappingState{Manifest: key, Resource: ref, Since: f.backoff.since.UTC(), Unit: f.unit()}, tellBy: now.Add(tellWithin), checkAt: now}
	if paths := f.paths(); m.o.Listen != nil && len(paths) > 0 && m.listening() < maxListeners {
		if w, err := m.o.Listen(ctx, paths); err == nil {
			f.flap.writers = w
		}
	}
	m.flapping[id{key, ref}] = f
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

func (m *Monitor) listening() (count int) {
	for _, f := range m.flapping {
		if f.flap.writers != nil {
			count++
		}
	}

	return count
}

// NothingDue notes that drift of a resource was looked for, and there was nothing to do.
func (m *Monitor) NothingDue(key string, ref model.Ref, now time.Time) {
	if f := m.of(key).resources[ref]; f != nil {
		f.backoff.nothingDue(now)
	}
}

// Flapping returns the resources that flap and were told, in a fixed order.
func (m *Monitor) Flapping() []model.FlappingState {
	var out []model.FlappingState
	for _, i := range slices.SortedFunc(maps.Keys(m.flapping), id.compare) {
		if f := m.flapping[i]; f.flap.isTold() {
			out = append(out, f.flap.state)
		}
	}

	return out
}

// tellFlapping tells which resources flap, once their writers are known or were looked for
// for long enough, and which were left alone since.
func (m *Monitor) tellFlapping(now time.Time) {
	for _, i := range slices.SortedFunc(maps.Keys(m.flapping), id.compare) {
		f := m.flapping[i]
		switch flap := f.flap; {
		case f.backoff.calm(now, m.of(i.key).limits):
			if m.endFlapping(i, f); flap.isTold() {
				m.o.Calm(flap.state)
			}
		case flap.check(now):
			m.o.Flapping(flap.state)
		}
	}
}

// endFlapping ends that a resource flaps, if it does, without telling.
func (m *Monitor) endFlapping(i id, f *follower) {
	if f.flap != nil {
		f.flap.close()
		f.flap = nil
		delete(m.flapping, i)
	}
}
