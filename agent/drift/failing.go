package drift

import (
	"context"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

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

// retry schedules the next attempt of a failed resource.
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

// after records a failed attempt of a resource.
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

// Note records the result of a resource in a run. part lists the resources of a partial run; nil is a
// full run.
func (m *Monitor) Note(ctx context.Context, key string, part []model.Ref, t *model.Transaction) {
	ref, now := t.Ref(), time.Now()
	m.Turned(key, ref)
	if t.NotRun {
		return
	}
	switch {
	case t.OK():
		m.Reached(key, ref)
	case t.Failed && !t.Noop:
		m.Failed(key, ref, now)
	}
	switch {
	case t.Cause != model.CauseDrift:
	case t.Failed, t.Changed && !t.Noop:
		m.Repaired(ctx, key, ref, now)
	case slices.Contains(part, ref):
		m.NothingDue(key, ref, now)
	}
}

// Failed records a failed attempt. Take returns the resource after firstWait or firstLongWait, and then
// after twice the last wait, at most MaxDelay. The state after the attempt may include a change by another
// program, and a missing dependency may return without an event. Commands are not retried, because they
// may change anything.
func (m *Monitor) Failed(key string, ref model.Ref, now time.Time) {
	f := m.of(key).resources[ref]
	if f == nil {
		return
	}
	if f.retry.failed = true; f.isCommand {
		return
	}
	f.retry.after(now, f.path != "")
	m.failing[id{key, ref}] = f
}

// Reached records that a resource is in its desired state.
func (m *Monitor) Reached(key string, ref model.Ref) {
	if f := m.of(key).resources[ref]; f != nil {
		// Repaired must know whether this was a retry.
		f.retry = retry{retried: f.retry.retried}
		f.putOff, f.seen = time.Time{}, time.Time{}
		delete(m.failing, id{key, ref})
	}
}

// DriftSince returns when the monitor noticed the current drift of a resource. It is zero without drift.
func (m *Monitor) DriftSince(key string, ref model.Ref) (at time.Time) {
	if f := m.of(key).resources[ref]; f != nil {
		at = f.seen
	}

	return at
}
