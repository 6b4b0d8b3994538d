package drift

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// Failed notes that a resource did not reach its state. It is looked at again after a
// second, then after twice that time, up to MaxDelay: what its run saw in the end may be
// what somebody else did meanwhile, of which the event finds nothing new. Others than
// those of Left are not: their events always count.
func (m *Monitor) Failed(key string, ref model.Ref, now time.Time) {
	f := m.of(key).resources[ref]
	if f == nil {
		return
	}
	if f.unreached = true; f.path == "" {
		return
	}
	f.wait = min(max(2*f.wait, time.Second), MaxDelay)
	f.again = now.Add(f.wait)
	m.failing[id{key, ref}] = f
}

// Reached notes that a resource is in its state.
func (m *Monitor) Reached(key string, ref model.Ref) {
	if f := m.of(key).resources[ref]; f != nil {
		f.wait, f.putOff, f.seen, f.unreached = 0, time.Time{}, time.Time{}, false
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
