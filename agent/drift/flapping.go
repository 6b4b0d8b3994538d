package drift

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
)

// Flapping is a resource that something else changes again and again.
type Flapping struct {
	Key string
	Ref model.Ref
	// Paths are where it is watched.
	Paths []string
	Since time.Time
}

// Repaired notes that drift of a resource was repaired, or that this failed. It returns
// true when the resource flaps from now on: its repairs are further and further apart
// until it is left alone.
func (m *Monitor) Repaired(key string, ref model.Ref, now time.Time) (Flapping, bool) {
	i := id{key, ref}
	f := m.of(key).resources[ref]
	if f == nil {
		return Flapping{}, false
	}
	m.braked[i] = f
	began := f.brake.repaired(now, m.of(key).limits)
	if !f.brake.flapping {
		delete(m.flaps, i)
	}
	if !began {
		return Flapping{}, false
	}
	m.flaps[i] = f

	return f.flapping(i), true
}

// Looked notes that drift of a resource was looked for, and there was nothing to do.
func (m *Monitor) Looked(key string, ref model.Ref, now time.Time) {
	if f := m.of(key).resources[ref]; f != nil {
		m.braked[id{key, ref}] = f
		f.brake.lookedAt(now)
	}
}

// Calm returns the resources that flapped and were left alone since: they are repaired
// at once again.
func (m *Monitor) Calm(now time.Time) []Flapping {
	var out []Flapping
	for i, f := range m.flaps {
		was := f.flapping(i)
		if f.brake.calm(now, m.of(i.key).limits) {
			out = append(out, was)
			delete(m.braked, i)
			delete(m.flaps, i)
		}
	}
	m.sweep(now)
	sortFlapping(out)

	return out
}

// sweep drops the brakes that have nothing left to remember. There may be as many as
// resources: it does so now and then.
func (m *Monitor) sweep(now time.Time) {
	if now.Sub(m.swept) < maxLookHold {
		return
	}
	m.swept = now
	for i, f := range m.braked {
		if !f.brake.flapping && f.brake.isOver(now, m.of(i.key).limits) {
			f.brake = brake{}
			delete(m.braked, i)
		}
	}
}

// Flapping returns the resources that flap.
func (m *Monitor) Flapping() []Flapping {
	var out []Flapping
	for i, f := range m.flaps {
		out = append(out, f.flapping(i))
	}
	sortFlapping(out)

	return out
}

func sortFlapping(all []Flapping) {
	slices.SortFunc(all, func(a, b Flapping) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Ref.String(), b.Ref.String()))
	})
}

func (f *follower) flapping(i id) Flapping {
	out := Flapping{Key: i.key, Ref: i.ref, Since: f.brake.since}
	for _, p := range f.points {
		if p.Kind != watch.Unit {
			out.Paths = append(out.Paths, p.Name)
		}
	}

	return out
}
