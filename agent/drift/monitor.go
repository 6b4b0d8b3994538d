package drift

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Watch is a point that is watched.
type Watch interface {
	// Err returns why the point is not watched at the moment; a wake tells when that
	// changes.
	Err() error
	// Written reports whether a file was written to where it is since it was asked last.
	Written() bool
	Close()
}

// Options are what a Monitor is made from.
type Options struct {
	// Arm watches a point. wake is called from any goroutine when something may have
	// happened there, and does not block. Nil watches nothing.
	Arm func(p watch.Point, wake func()) (Watch, error)
	// IsToCome reports whether a run in hand of a manifest is still to come to a resource,
	// or at it: what happens to it may be its own change. Nil is never.
	IsToCome func(key string, ref model.Ref) bool
	// Look returns what is at a path now.
	Look func(path string) (files.Entry, error)
	// Wake is called when something may have drifted. It does not block.
	Wake func()
	Log  *slog.Logger
}

// Drift is that resources of a manifest may have drifted.
type Drift struct {
	Key  string
	Refs []model.Ref
	// Seen is when the first of them was noticed.
	Seen time.Time
}

// Monitor follows the resources of the manifests of a node, by their keys. Its
// methods are for one goroutine. Make it with New.
type Monitor struct {
	o         Options
	manifests map[string]*followed
	// polled cannot be watched, braked have a brake that holds them back or counts, and
	// flaps are those of them that flap.
	polled, braked, flaps map[id]*follower
	// swept is when the brakes were last looked through that count.
	swept time.Time
	// held were seen, at these times, and wait for their brakes.
	held map[id]time.Time

	mu   sync.Mutex
	seen map[id]time.Time
}

// id names a resource of a node.
type id struct {
	key string
	ref model.Ref
}

// followed are the resources of a manifest.
type followed struct {
	limits    model.Flapping
	resources map[model.Ref]*follower
}

// follower is what is known of one resource.
type follower struct {
	points  []watch.Point
	watches []Watch
	// path has the mark left, by the last run that came to the resource; empty for one
	// that has none.
	path string
	left files.Mark
	// fallback is why it is polled; every is how often, and next when.
	fallback error
	every    time.Duration
	next     time.Time

	brake brake
}

// DefaultPoll is how often a resource is looked at that cannot be watched, and whose
// poll property says nothing else.
const DefaultPoll = time.Minute

// New returns a monitor that follows nothing.
func New(o Options) *Monitor {
	return &Monitor{
		o: o, manifests: map[string]*followed{}, polled: map[id]*follower{}, braked: map[id]*follower{}, flaps: map[id]*follower{},
		held: map[id]time.Time{}, seen: map[id]time.Time{},
	}
}

// Follow follows the resources of a manifest, and no others: those that are watched by
// the same points as before keep their watches and what is known of them. All are
// armed when it returns.
func (m *Monitor) Follow(key string, facts model.Facts, resources []*resource.Resource, limits model.Flapping) {
	if m.o.Arm == nil {
		return
	}
	before := m.of(key).resources
	now := make(map[model.Ref]*follower, len(resources))
	var fresh []id
	for _, r := range resources {
		if r.Meta().Drift == model.DriftIgnore {
			continue
		}
		points := r.Watches(facts)
		if len(points) == 0 {
			continue
		}
		f := before[r.Ref()]
		if f == nil || !slices.Equal(f.points, points) {
			f = &follower{points: points}
			fresh = append(fresh, id{key, r.Ref()})
		}
		f.every = max(cmp.Or(r.Meta().Poll.Std(), DefaultPoll), time.Second)
		now[r.Ref()] = f
	}
	for ref, f := range before {
		if now[ref] != f {
			m.drop(id{key, ref}, f)
		}
	}
	m.manifests[key] = &followed{limits, now}
	for _, i := range fresh {
		m.arm(i, now[i.ref])
	}
}

func (m *Monitor) of(key string) *followed {
	if all := m.manifests[key]; all != nil {
		return all
	}

	return &followed{}
}

// arm arms the watches of a resource. Where one cannot be, it is polled.
func (m *Monitor) arm(i id, f *follower) {
	for _, p := range f.points {
		w, err := m.o.Arm(p, func() { m.note(i) })
		if err != nil {
			m.fallBack(i, f, err)
			return
		}
		f.watches = append(f.watches, w)
	}
	f.fallback = nil
	delete(m.polled, i)
}

// fallBack has a resource polled from now on.
func (m *Monitor) fallBack(i id, f *follower, err error) {
	f.close()
	if f.fallback == nil {
		m.o.Log.Warn("resource polled, it cannot be watched", "manifest", i.key, "resource", i.ref.String(), "every", f.every, "error", err)
	}
	f.fallback, f.next = err, time.Now().Add(f.every)
	m.polled[i] = f
}

// close closes the watches of a resource.
func (f *follower) close() {
	for _, w := range f.watches {
		w.Close()
	}
	f.watches = nil
}

// drop forgets a resource.
func (m *Monitor) drop(i id, f *follower) {
	f.close()
	delete(m.polled, i)
	delete(m.braked, i)
	delete(m.flaps, i)
	delete(m.held, i)
}

// note notes that something may have happened to a resource.
func (m *Monitor) note(i id) {
	m.keep(i, time.Now())
	m.o.Wake()
}

// keep keeps since when something may have happened to a resource, for a later Take.
func (m *Monitor) keep(i id, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, known := m.seen[i]; !known || at.Before(before) {
		m.seen[i] = at
	}
}

// Turned notes that a run came to the end of the turn of a resource: what happened to it
// can be judged now.
func (m *Monitor) Turned(key string, ref model.Ref) {
	m.mu.Lock()
	_, seen := m.seen[id{key, ref}]
	m.mu.Unlock()
	if seen {
		m.o.Wake()
	}
}

// Remove stops following a manifest.
func (m *Monitor) Remove(key string) {
	for ref, f := range m.of(key).resources {
		m.drop(id{key, ref}, f)
	}
	delete(m.manifests, key)
}

// Close stops following everything.
func (m *Monitor) Close() {
	for key := range m.manifests {
		m.Remove(key)
	}
}

// Left notes what a run saw at the path of a resource at the end of its turn: an event
// that finds just that was its own.
func (m *Monitor) Left(key string, ref model.Ref, path string, mark files.Mark) {
	if f := m.of(key).resources[ref]; f != nil {
		f.path, f.left = path, mark
	}
}

// Take returns what may have drifted since the last call, by manifest, in the order of
// their keys, and what is polled, when that is due. What a brake holds back stays for
// a later call.
func (m *Monitor) Take(now time.Time) []Drift {
	m.gather(now)
	byKey := map[string]*Drift{}
	for i, at := range m.held {
		f := m.of(i.key).resources[i.ref]
		if now.Before(f.brake.until) {
			continue
		}
		delete(m.held, i)
		d := byKey[i.key]
		if d == nil {
			d = &Drift{Key: i.key, Seen: at}
			byKey[i.key] = d
		}
		if d.Refs = append(d.Refs, i.ref); at.Before(d.Seen) {
			d.Seen = at
		}
	}
	out := make([]Drift, 0, len(byKey))
	for _, d := range byKey {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b Drift) int { return cmp.Compare(a.Key, b.Key) })

	return out
}

// gather takes over what was seen since the last call, but for what the last run did
// itself. A watch that has failed since has its resource polled.
func (m *Monitor) gather(now time.Time) {
	var seen map[id]time.Time
	m.mu.Lock()
	if len(m.seen) > 0 {
		seen, m.seen = m.seen, map[id]time.Time{}
	}
	m.mu.Unlock()
	hold := func(i id, at time.Time) {
		if before, known := m.held[i]; !known || at.Before(before) {
			m.held[i] = at
		}
	}
	for i, at := range seen {
		f := m.of(i.key).resources[i.ref]
		if f == nil {
			continue
		}
		if m.o.IsToCome != nil && m.o.IsToCome(i.key, i.ref) {
			m.keep(i, at)
			continue
		}
		written, err := f.ask()
		if err != nil {
			m.fallBack(i, f, err)
		}
		// What is written into a file shows in its times only from one tick of their
		// clock to the next.
		if written || !m.isAsLeft(f) {
			hold(i, at)
		}
	}
	for i, f := range m.polled {
		if !now.Before(f.next) {
			f.next = now.Add(f.every)
			m.arm(i, f)
			hold(i, now)
		}
	}
}

// ask asks the watches of a resource whether a file was written to, and why one of
// them does not watch.
func (f *follower) ask() (written bool, err error) {
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

// Next returns when Take or Calm have something that was not seen just now; zero is
// never.
func (m *Monitor) Next() time.Time {
	var next time.Time
	earlier := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, f := range m.polled {
		earlier(f.next)
	}
	for i := range m.held {
		earlier(m.of(i.key).resources[i.ref].brake.until)
	}
	for i, f := range m.flaps {
		earlier(f.brake.calmAt(m.of(i.key).limits))
	}

	return next
}

// Watched returns how many resources are watched, and how many are polled because
// they cannot be, with the reason of one.
func (m *Monitor) Watched() (watched, polled int, reason error) {
	for _, all := range m.manifests {
		watched += len(all.resources)
	}
	for _, f := range m.polled {
		if reason == nil || f.fallback.Error() < reason.Error() {
			reason = f.fallback
		}
	}

	return watched - len(m.polled), len(m.polled), reason
}
