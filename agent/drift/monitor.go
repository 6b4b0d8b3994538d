package drift

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Options are what a Monitor is made from.
type Options struct {
	// Arm watches a point. wake is called from any goroutine when something may have
	// happened there, and does not block. Nil watches nothing.
	Arm func(p watch.Point, wake func()) (watch.Watch, error)
	// IsToCome reports whether a run in hand of a manifest is still to come to a resource,
	// or at it: what happens to it may be its own change. Nil is never.
	IsToCome func(key string, ref model.Ref) bool
	// Look returns what is at a path now.
	Look func(path string) (files.Entry, error)
	// Wake is called when something may have drifted. It does not block.
	Wake func()
	// Listen begins to note who writes the files at paths; nil notes nobody.
	Listen func(ctx context.Context, paths []string) (Writers, error)
	// Flapping is called by Take, once, of a resource that flaps, and Calm of one that
	// Flapping was called of when it was left alone. Neither is called of one that is not
	// followed any more.
	Flapping, Calm func(f model.FlappingState)
	Log            *slog.Logger
}

// Monitor follows the resources of the manifests of a node, by their keys. Its
// methods are for one goroutine. Make it with New.
type Monitor struct {
	o         Options
	manifests map[string]*followed
	// polled cannot be watched.
	polled   map[id]*follower
	flapping flapping
	// failing did not reach their state, and are looked at again.
	failing map[id]*follower
	// pending were seen, and wait for their backoff.
	pending map[id]sighting
	// unwatched are those of polled that the log is still to name.
	unwatched []unwatched
	// events are what the watches told since the last Take.
	events events
}

// id names a resource of a node.
type id struct {
	key string
	ref model.Ref
}

// String returns the reference of the resource, or "input files".
func (i id) String() string {
	if i.ref == inputs {
		return "input files"
	}

	return i.ref.String()
}

func (i id) compare(other id) int {
	return cmp.Or(cmp.Compare(i.key, other.key), cmp.Compare(i.ref.String(), other.ref.String()))
}

// inputs is the reference under which the input files of a manifest are followed, beside its resources.
var inputs = model.Ref{}

// Manifest has the resources and files of a manifest that a Monitor follows.
type Manifest struct {
	Facts     model.Facts
	Resources []*resource.Resource
	// Inputs are the paths of the input files, such as child manifests and data.
	Inputs []string
	// Bundle is the directory of the bundle, empty for none. Its files change only with the manifest, so they are
	// not watched.
	Bundle string
	// Limits without a number of repairs end all flapping.
	Limits model.Flapping
}

// points returns the points to watch for each resource, and for the inputs.
func (f *Manifest) points() map[model.Ref][]watch.Point {
	out := make(map[model.Ref][]watch.Point, len(f.Resources))
	add := func(ref model.Ref, points []watch.Point) {
		if f.Bundle != "" {
			points = slices.DeleteFunc(points, func(p watch.Point) bool { return strings.HasPrefix(p.Name, f.Bundle+"/") })
		}
		if len(points) > 0 {
			out[ref] = points
		}
	}
	for _, r := range f.Resources {
		if r.Meta().Drift != model.DriftIgnore {
			add(r.Ref(), r.Watches(f.Facts))
		}
	}
	add(inputs, resource.WatchPaths(f.Inputs...))

	return out
}

// followed are the resources of a manifest.
type followed struct {
	limits    model.Flapping
	resources map[model.Ref]*follower
}

// sighting is that something may have happened to a resource, first at a time.
type sighting struct {
	at time.Time
	// unchecked is that it may have been the last run: nobody has looked.
	unchecked bool
}

// follower is what is known of one resource.
type follower struct {
	points  []watch.Point
	watches []watch.Watch
	// path has the mark left, by the last run that came to the resource; empty for one
	// that has none.
	path    string
	left    files.Mark
	polling polling
	// isCommand is that nobody knows what its change alters.
	isCommand bool
	// seen is when drift was first taken of one that did not reach its state since.
	seen time.Time

	retry   retry
	backoff backoff
	// putOff is until when a limit puts its repair off.
	putOff time.Time
	// flap is nil for one that does not flap.
	flap *flap
}

// DefaultPoll is how often a resource is looked at that cannot be watched, and whose
// poll property says nothing else.
const DefaultPoll = time.Minute

// New returns a monitor that follows nothing.
func New(o Options) *Monitor {
	m := &Monitor{
		o: o, manifests: map[string]*followed{}, polled: map[id]*follower{}, failing: map[id]*follower{},
		pending: map[id]sighting{}, events: events{at: map[id]event{}},
	}
	m.flapping = flapping{&m.o, map[id]*follower{}}

	return m
}

// Follow replaces the resources and inputs of a manifest. Those with the same points as before keep their watches and
// their history. All watches are armed when it returns.
func (m *Monitor) Follow(key string, manifest Manifest) {
	if m.o.Arm == nil {
		return
	}
	before, now := m.of(key).resources, map[model.Ref]*follower{}
	var fresh []id
	for ref, points := range manifest.points() {
		f := before[ref]
		if f == nil || !slices.Equal(f.points, points) {
			f = &follower{points: points}
			fresh = append(fresh, id{key, ref})
		}
		if manifest.Limits.Repairs == 0 && f.flap != nil {
			m.flapping.end(id{key, ref}, f)
			f.backoff = backoff{}
		}
		f.polling.every = DefaultPoll
		now[ref] = f
	}
	for _, r := range manifest.Resources {
		if f := now[r.Ref()]; f != nil {
			f.isCommand = r.Type.Writes == resource.Everything
			f.polling.every = max(cmp.Or(r.Meta().Poll.Std(), DefaultPoll), time.Second)
		}
	}
	for ref, f := range before {
		if now[ref] != f {
			m.drop(id{key, ref}, f)
		}
	}
	m.manifests[key] = &followed{manifest.Limits, now}
	slices.SortFunc(fresh, id.compare)
	for _, i := range fresh {
		m.arm(i, now[i.ref])
	}
	m.logUnwatched()
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
		w, err := m.o.Arm(p, func() { m.note(i, p.Name) })
		if err != nil {
			m.fallBack(i, f, err)
			return
		}
		f.watches = append(f.watches, w)
	}
	f.polling.reason = nil
	delete(m.polled, i)
}

// close closes the watches of a resource.
func (f *follower) close() {
	for _, w := range f.watches {
		w.Close()
	}
	f.watches = nil
}

// waits returns until when what happens to a resource waits.
func (f *follower) waits() time.Time {
	return model.LaterTime(model.LaterTime(f.backoff.until, f.putOff), f.retry.held)
}

// drop forgets a resource.
func (m *Monitor) drop(i id, f *follower) {
	f.close()
	m.flapping.end(i, f)
	delete(m.polled, i)
	delete(m.failing, i)
	delete(m.pending, i)
}

// note records a change of a resource at a point.
func (m *Monitor) note(i id, point string) {
	m.events.add(i, event{time.Now(), []string{point}})
	m.o.Wake()
}

// Turned notes that a run came to the end of the turn of a resource: what happened to it
// can be judged now.
func (m *Monitor) Turned(key string, ref model.Ref) {
	if m.events.has(id{key, ref}) {
		m.o.Wake()
	}
}

// PutOff has Take leave a resource out until a time. If it was seen to have drifted at
// another one, which zero is not, Take returns it again then.
func (m *Monitor) PutOff(key string, ref model.Ref, seen, until time.Time) {
	f := m.of(key).resources[ref]
	if f == nil {
		return
	}
	if f.putOff = until; !seen.IsZero() {
		m.pending[id{key, ref}] = sighting{at: seen}
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

// Watched returns how many resources are watched, and how many are polled because
// they cannot be, with the reason of one.
func (m *Monitor) Watched() (watched, polled int, reason error) {
	for _, all := range m.manifests {
		for ref := range all.resources {
			if ref != inputs {
				watched++
			}
		}
	}
	for i, f := range m.polled {
		if i.ref == inputs {
			continue
		}
		polled++
		if reason == nil || f.polling.reason.Error() < reason.Error() {
			reason = f.polling.reason
		}
	}

	return watched - polled, polled, reason
}
