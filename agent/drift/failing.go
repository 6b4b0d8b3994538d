package drift

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// firstWait is how long a resource that failed waits where its run may have seen what somebody
// else did at its path, firstLongWait where that is not so, and what it needs is perhaps away:
// a mirror, a lock, a database.
const (
	firstWait     = time.Second
	firstLongWait = 8 * time.Second
	// maxHeld bounds how long events of the latter wait: a failed start of a service has events of its
	// own, and so has somebody who mends it, for whom MaxDelay is too long. So a service that cannot be
	// started is tried each minute.
	maxHeld = time.Minute
)

// retry is how a resource that did not reach its state is tried again.
type retry struct {
	// failed is that the last try did; retried that what is taken of the resource is one more, and
	// nobody was seen to have changed it since.
	failed, retried bool
	// next is when it is looked at again, wait after how long.
	next time.Time
	wait time.Duration
	// held is until when events of one without a path are not looked at: they may be its own.
	held time.Time
}

// after notes a try that failed, of a resource with a path or without.
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

// Failed notes that a resource did not reach its state. It is looked at again after
// firstWait or firstLongWait, then after twice that time, up to MaxDelay: what its run saw in the
// end may be what somebody else did meanwhile, of which the event finds nothing new, and what
// it needs may come back without one. What may alter everything, such as a command, is not
// repeated by itself.
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

// Reached notes that a resource is in its state.
func (m *Monitor) Reached(key string, ref model.Ref) {
	if f := m.of(key).resources[ref]; f != nil {
		// Repaired asks next whether this was a retry.
		f.retry = retry{retried: f.retry.retried}
		f.putOff, f.seen = time.Time{}, time.Time{}
		delete(m.failing, id{key, ref})
	}
}

// DriftSince returns when drift of a resource was first noticed since it reached its state; zero is
// not at all.
func (m *Monitor) DriftSince(key string, ref model.Ref) (at time.Time) {
	if f := m.of(key).resources[ref]; f != nil {
		at = f.seen
	}

	return at
}
