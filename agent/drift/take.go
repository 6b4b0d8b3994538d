package drift

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Drift is that resources of a manifest may have drifted.
type Drift struct {
	Key string
	// Refs are nil if an input file of the manifest changed: then all resources may have drifted.
	Refs []model.Ref
	// Since is when the first of them was noticed, tries that failed since included.
	Since time.Time
	// Retry is that they failed before, and nobody was seen to have changed any since.
	Retry bool
}

// Take returns what may have drifted since the last call, by manifest, in the order of
// their keys, and what is polled, when that is due. What waits for its backoff, or for a
// limit, stays for a later call. Before, it tells which resources flap from now on, or no
// longer do.
func (m *Monitor) Take(now time.Time) []Drift {
	m.flapping.tell(now, m.limits)
	m.gather(now)
	m.logUnwatched()
	byKey := map[string]*Drift{}
	for i, s := range m.pending {
		f := m.of(i.key).resources[i.ref]
		if now.Before(f.waits()) {
			continue
		}
		delete(m.pending, i)
		if s.unchecked && m.isToCome(i) {
			m.events.add(i, event{at: s.at, points: []string{f.path}})
			continue
		}
		if s.unchecked && m.isAsLeft(f) {
			continue
		}
		if i.ref == inputs {
			f.backoff.nothingDue(now) // delays the checks for a file that changes all the time
		}
		f.seen = model.EarlierNonZero(f.seen, s.at)
		d := byKey[i.key]
		if d == nil {
			d = &Drift{Key: i.key, Since: f.seen, Retry: true}
			byKey[i.key] = d
		}
		d.Refs, d.Since, d.Retry = append(d.Refs, i.ref), model.EarlierNonZero(d.Since, f.seen), d.Retry && f.retry.retried
	}
	out := make([]Drift, 0, len(byKey))
	for _, d := range byKey {
		if slices.Contains(d.Refs, inputs) {
			d.Refs = nil
		}
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Drift) int { return cmp.Compare(a.Key, b.Key) })

	return out
}

// gather takes over what was seen since the last call, but for what the last run did
// itself. A watch that has failed since has its resource polled.
func (m *Monitor) gather(now time.Time) {
	add := func(i id, s sighting, retried bool) {
		f := m.of(i.key).resources[i.ref]
		before, known := m.pending[i]
		if f.retry.retried = retried && (f.retry.retried || !known); known {
			s.unchecked = s.unchecked && before.unchecked
			if before.at.Before(s.at) {
				s.at = before.at
			}
		}
		m.pending[i] = s
	}
	for i, e := range m.events.take() {
		f := m.of(i.key).resources[i.ref]
		if f == nil {
			continue
		}
		if m.isToCome(i) {
			m.events.add(i, e)
			continue
		}
		written, err := f.poll()
		if err != nil {
			m.fallBack(i, f, err)
		}
		// Events of a unit that failed may be those of its own tries.
		isTry := f.retry.failed && f.path == "" && !f.isCommand
		// The mark of the last run covers only the path of the resource, not its source or template.
		elsewhere := !e.isOnlyAt(f.path)
		// What is written into a file shows in its times only from one tick of their
		// clock to the next. What waits for its backoff is looked at afterwards, once.
		switch waits := now.Before(f.waits()); {
		case written || elsewhere || waits:
			add(i, sighting{e.at, !written && !elsewhere}, isTry)
		case !m.isAsLeft(f):
			add(i, sighting{at: e.at}, isTry)
		}
	}
	for i, f := range m.polled {
		if !now.Before(f.polling.next) {
			f.polling.next = now.Add(f.polling.every)
			m.arm(i, f)
			if i.ref == inputs && f.polling.reason != nil {
				continue // runs on the interval of the manifest read the inputs again
			}
			add(i, sighting{at: now}, f.retry.failed)
		}
	}
	for i, f := range m.failing {
		if !now.Before(f.retry.next) {
			delete(m.failing, i)
			add(i, sighting{at: now}, true)
		}
	}
}

// isToCome reports whether a run in hand is still to come to a resource, or at it.
func (m *Monitor) isToCome(i id) bool { return m.o.IsToCome != nil && m.o.IsToCome(i.key, i.ref) }

// poll asks the watches of a resource whether a file was written to, and why one of
// them does not watch.
func (f *follower) poll() (written bool, err error) {
	for _, w := range f.watches {
		written = w.Written() || written
		err = cmp.Or(err, w.Err())
	}

	return written, err
}

// isAsLeft reports whether that is at the path of a resource which the last run left
// there.
func (m *Monitor) isAsLeft(f *follower) bool {
	if f.path == "" {
		return false
	}
	e, err := m.o.Look(f.path)

	return err == nil && e.Mark() == f.left
}

// Next returns when Take has something that was not seen just now; zero is never.
func (m *Monitor) Next() (next time.Time) {
	for _, f := range m.polled {
		next = model.EarlierNonZero(next, f.polling.next)
	}
	for _, f := range m.failing {
		next = model.EarlierNonZero(next, f.retry.next)
	}
	for i := range m.pending {
		next = model.EarlierNonZero(next, m.of(i.key).resources[i.ref].waits())
	}

	return model.EarlierNonZero(next, m.flapping.next(m.limits))
}
