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
	if f.unreached = true; f.isCommand {
		return
	}
	first := firstWait
	if f.path == "" {
		first = firstLongWait
	}
	f.wait = min(max(2*f.wait, first), MaxDelay)
	f.again = now.Add(f.wait)
	if f.path == "" {
		f.held = now.Add(min(f.wait/4, maxHeld))
	}
	m.failing[id{key, ref}] = f
}

// Reached notes that a resource is in its state.
func (m *Monitor) Reached(key string, ref model.Ref) {
	if f := m.of(key).resources[ref]; f != nil {
		f.wait, f.putOff, f.held, f.seen, f.unreached = 0, time.Time{}, time.Time{}, time.Time{}, false
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
