package drift

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

// Drift lists resources of a manifest that may have drifted.
type Drift struct {
	Key string
	// Refs is nil if an input file of the manifest changed: then all resources may have drifted.
	Refs []model.Ref
	// Since is the time of the first event, including events before failed attempts.
	Since time.Time
	// Retry reports whether all of them failed before and had no event since.
	Retry bool
}

// Take returns the resources that may have drifted since its last call, sorted by key of the manifest, and
// the polled resources that are due. Resources that wait for a backoff or a limit stay for a later call.
func (m *Monitor) Take(now time.Time) []Drift {
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

// gather moves the new events to pending, except for events that the last run caused. A resource with a
// failed watch is polled.
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
		// Failed attempts of a unit cause events of the unit.
		isTry := f.retry.failed && f.path == "" && !f.isCommand
		// The mark of the last run covers only the path of the resource, not its source or template.
		elsewhere := !e.isOnlyAt(f.path)
		// The times of a file show a write only after the next tick of their clock. A resource that waits
		// for its backoff is checked once, at its end.
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

func (m *Monitor) isToCome(i id) bool { return m.o.IsToCome != nil && m.o.IsToCome(i.key, i.ref) }

// poll reports whether a watched file of the resource was written, and why a watch failed.
func (f *follower) poll() (written bool, err error) {
	for _, w := range f.watches {
		written = w.Written() || written
		err = cmp.Or(err, w.Err())
	}

	return written, err
}

// isAsLeft reports whether the path of a resource is as the last run left it.
func (m *Monitor) isAsLeft(f *follower) bool {
	if f.path == "" {
		return false
	}
	e, err := m.o.Look(f.path)

	return err == nil && e.Mark() == f.left
}

// Next returns when Take has work that needs no event, zero for never.
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

	for i, f := range m.flapping {
		next = model.EarlierNonZero(next, f.backoff.calmAt(m.of(i.key).limits))
		next = model.EarlierNonZero(next, f.flap.next())
	}

	return next
}

const (
	// firstWait is the first wait of a failed resource with a path, firstLongWait of one without. The
	// latter often fails because of something else, such as a mirror, a lock or a database.
	firstWait     = time.Second
	firstLongWait = 8 * time.Second
	// maxHeld limits how long events of a failed resource without a path wait. A failed start of a
	// service causes events, but so does an administrator who repairs it, and MaxDelay is too long for
	// that.
	maxHeld = time.Minute
)

type retry struct {
	// failed reports whether the last attempt failed. retried reports whether the next drift is a
	// retry: no watch reported a change since.
	failed, retried bool
	// next is the time of the next attempt, wait the wait before it.
	next time.Time
	wait time.Duration
	// held is the time until which events of a resource without a path wait. The attempt itself may
	// cause them.
	held time.Time
}

// after records a failed attempt of a resource. The next one follows after firstWait or firstLongWait, and
// then after twice the last wait, at most MaxDelay. The state after the attempt may include a change by
// another program, and a missing dependency may return without an event.
func (r *retry) after(now time.Time, hasPath bool) {
	first := firstWait
	if !hasPath {
		first = firstLongWait
	}
	r.wait = min(max(2*r.wait, first), MaxDelay)
	r.next = now.Add(r.wait)
	if !hasPath {
		r.held = now.Add(min(r.wait/4, maxHeld))
	}
}

// Note records the result of a resource in a run. part lists the resources of a partial run; nil is a full
// run. A search for the writers of a flapping resource ends with ctx.
func (m *Monitor) Note(ctx context.Context, key string, part []model.Ref, t *model.Transaction, now time.Time) {
	i := id{key, t.Ref()}
	if m.events.has(i) {
		m.o.Wake() // Take can judge the events now
	}
	f := m.of(key).resources[i.ref]
	if f == nil || t.NotRun {
		return
	}
	switch {
	case t.OK():
		// The switch below must know whether this was a retry.
		f.retry = retry{retried: f.retry.retried}
		f.putOff, f.seen = time.Time{}, time.Time{}
		delete(m.failing, i)
	case t.Failed && !t.Noop:
		f.retry.failed = true
		if !f.isCommand { // a command may change anything
			f.retry.after(now, f.path != "")
			m.failing[i] = f
		}
	}
	switch {
	case t.Cause != model.CauseDrift:
	case t.Failed, t.Changed && !t.Noop:
		// No other program causes a retry, so it does not count.
		if !f.retry.retried && f.backoff.repaired(now, m.of(key).limits) {
			m.beginFlapping(ctx, i, f, now)
		}
	case slices.Contains(part, i.ref):
		f.backoff.nothingDue(now)
	}
}

// DriftSince returns when the monitor noticed the current drift of a resource. It is zero without drift.
func (m *Monitor) DriftSince(key string, ref model.Ref) (at time.Time) {
	if f := m.of(key).resources[ref]; f != nil {
		at = f.seen
	}

	return at
}
