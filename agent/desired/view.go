package desired

import (
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/resource"
)

// View is the result of a Sync: the active versions and the state of each key. One goroutine
// at a time may use it.
type View struct {
	// Next is when Sync has work without a change of the bucket: a retry, or the end of an
	// assignment. Zero is never.
	Next time.Time
	// Fetching reports whether a bundle is being downloaded.
	Fetching bool

	order  []*Version
	active map[string]*Version
	states map[string]model.ManifestState
}

// View returns the assignments after the last Sync or Handle.
func (s *Set) View() *View {
	out := &View{Next: s.next(), Fetching: s.bundles.Fetching(), active: map[string]*Version{}, states: map[string]model.ManifestState{}}
	for _, u := range s.order {
		v := *u.active
		out.order = append(out.order, &v)
		out.active[u.key] = &v
	}
	for key, u := range s.units {
		out.states[key] = u.state(s.remaining)
	}

	return out
}

// After makes a view the successor of another view: a version that stays active keeps its pointer, with the
// resolution of its last run unless it is in refreshed.
func (w *View) After(before *View, refreshed []string) *View {
	for i, v := range w.order {
		key := v.Entry.Key
		same := before.active[key]
		if !same.sameAs(v) {
			continue
		}
		if slices.Contains(refreshed, key) {
			same.Resolution = v.Resolution
		}
		w.order[i], w.active[key] = same, same
	}

	return w
}

// Keys returns the keys with an active version in run order.
func (w *View) Keys() []string {
	keys := make([]string, len(w.order))
	for i, v := range w.order {
		keys[i] = v.Entry.Key
	}

	return keys
}

// Active returns the active version of a key, nil for none.
func (w *View) Active(key string) *Version { return w.active[key] }

// Has reports whether a key is assigned.
func (w *View) Has(key string) bool {
	_, assigned := w.states[key]

	return assigned
}

// States returns a copy of the published state of each key.
func (w *View) States() map[string]model.ManifestState { return maps.Clone(w.states) }

// Conflicts returns a function that reports the resources that an active manifest other than
// the one of key declares differently.
func (w *View) Conflicts(key string) func([]*resource.Resource) model.Problems {
	return w.conflicts(func(other string) bool { return other != key })
}

// ConflictsOf returns the same function for the manifests of another name.
func (w *View) ConflictsOf(name string) func([]*resource.Resource) model.Problems {
	return w.conflicts(func(key string) bool {
		_, other, _ := model.SplitKey(key)
		return other != name
	})
}

func (w *View) conflicts(counts func(key string) bool) func([]*resource.Resource) model.Problems {
	taken := graph.Claims{}
	for _, v := range w.order {
		if key := v.Entry.Key; counts(key) {
			taken.Add(key, v.Resolution.Resources)
		}
	}

	return taken.Conflicts
}
