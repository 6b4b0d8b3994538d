// Package drift detects resources that may have drifted from the manifests of a node. An event only
// requests another look. Events of one resource are merged.
package drift

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Options configure a Monitor.
type Options struct {
	// Arm watches a point. wake is called from any goroutine after an event and does not block. Nil
	// disables the drift detection.
	Arm func(p watch.Point, wake func()) (watch.Watch, error)
	// IsToCome reports whether a run in progress still has to process a resource: an event may be the
	// change of the run. Nil means never.
	IsToCome func(key string, ref model.Ref) bool
	Look     func(path string) (files.Entry, error)
	// Wake is called after an event. It does not block.
	Wake func()
	// Listen starts to observe the writers of paths. It may be nil.
	Listen func(ctx context.Context, paths []string) (Writers, error)
	Log    *slog.Logger
}

// Monitor follows the resources of the manifests of a node, by key. Its methods are not safe for concurrent
// use.
type Monitor struct {
	o         Options
	manifests map[string]*followed
	// polled holds the resources that cannot be watched.
	polled map[id]*follower
	// flapping holds the resources that flap.
	flapping map[id]*follower
	// failing holds failed resources that wait for a retry.
	failing map[id]*follower
	// pending holds events that wait for their backoff.
	pending map[id]sighting
	// unwatched holds polled resources that are not logged yet.
	unwatched []unwatched
	// events holds the events since the last Take.
	events events
}

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

// inputs is the reference of the input files of a manifest.
var inputs = model.Ref{}

// Manifest lists the resources and files of a manifest to follow.
type Manifest struct {
	Facts     model.Facts
	Resources []*resource.Resource
	// Inputs lists the input files, such as child manifests and data.
	Inputs []string
	// Bundle is the directory of the bundle, empty for none. Its files change only with the manifest and
	// are not watched.
	Bundle string
	// Limits without a number of repairs disable the flapping detection.
	Limits model.Flapping
}

// points returns the points to watch for each resource and for the inputs.
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

type followed struct {
	limits    model.Flapping
	resources map[model.Ref]*follower
}

// sighting is a possible change of a resource. at is the time of the first event.
type sighting struct {
	at time.Time
	// unchecked reports whether the last run may have caused the event.
	unchecked bool
}

type follower struct {
	points  []watch.Point
	watches []watch.Watch
	// path had the mark left at the end of the last run; empty if unknown.
	path    string
	left    files.Mark
	polling polling
	// isCommand reports whether a change of the resource may change anything.
	isCommand bool
	// seen is the time of the first drift since the resource reached its desired state.
	seen time.Time

	retry   retry
	backoff backoff
	// putOff is the time until which a limit delays the repair.
	putOff time.Time
	flap   *flap
}

// DefaultPoll is the poll interval of a resource without a poll property.
const DefaultPoll = time.Minute

// New returns a monitor that follows nothing.
func New(o Options) *Monitor {
	return &Monitor{
		o: o, manifests: map[string]*followed{}, polled: map[id]*follower{}, failing: map[id]*follower{},
		pending: map[id]sighting{}, flapping: map[id]*follower{}, events: events{at: map[id]event{}},
	}
}

// Follow replaces the resources and inputs of a manifest. Resources with unchanged points keep their
// watches and history. All watches are armed when Follow returns.
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
			m.endFlapping(id{key, ref}, f)
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

// arm arms the watches of a resource. If that fails, the resource is polled.
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

func (f *follower) close() {
	for _, w := range f.watches {
		w.Close()
	}
	f.watches = nil
}

func (f *follower) waits() time.Time {
	return model.LaterTime(model.LaterTime(f.backoff.until, f.putOff), f.retry.held)
}

func (m *Monitor) drop(i id, f *follower) {
	f.close()
	m.endFlapping(i, f)
	delete(m.polled, i)
	delete(m.failing, i)
	delete(m.pending, i)
}

func (m *Monitor) note(i id, point string) {
	m.events.add(i, event{time.Now(), []string{point}})
	m.o.Wake()
}

// PutOff delays the repair of a resource until a time. seen is the time of its drift; Take returns the
// resource again if it is not zero.
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

// Close stops following all manifests.
func (m *Monitor) Close() {
	for key := range m.manifests {
		m.Remove(key)
	}
}

// Left records the mark that a run found at the path of a resource after its change. An event that finds
// the same mark is ignored.
func (m *Monitor) Left(key string, ref model.Ref, path string, mark files.Mark) {
	if f := m.of(key).resources[ref]; f != nil {
		f.path, f.left = path, mark
	}
}

// Watched returns the numbers of watched and polled resources, and why one of them is polled.
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

// events holds the unhandled events of resources. Its methods are safe for concurrent use.
type events struct {
	mu sync.Mutex
	at map[id]event
}

// event is the time of the first event of a resource, and the names of all changed points.
type event struct {
	at     time.Time
	points []string
}

func (e event) isOnlyAt(path string) bool {
	return !slices.ContainsFunc(e.points, func(name string) bool { return name != path })
}

func (e *events) add(i id, next event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.at[i]
	if !known {
		e.at[i] = next
		return
	}
	before.at = model.EarlierTime(before.at, next.at)
	for _, name := range next.points {
		if !slices.Contains(before.points, name) {
			before.points = append(before.points, name)
		}
	}
	e.at[i] = before
}

func (e *events) has(i id) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, known := e.at[i]

	return known
}

func (e *events) take() (all map[id]event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.at) > 0 {
		all, e.at = e.at, map[id]event{}
	}

	return all
}

// maxNamed limits the resources that a log line names.
const maxNamed = 3

// unwatched is a resource that became polled and is not logged yet.
type unwatched struct {
	id    id
	cause error
}

type polling struct {
	reason error
	every  time.Duration
	next   time.Time
}

// fallBack polls a resource from now on. The caller calls logUnwatched afterwards.
func (m *Monitor) fallBack(i id, f *follower, err error) {
	f.close()
	if f.polling.reason == nil {
		m.o.Log.Debug("resource polled, it cannot be watched", "manifest", i.key, "resource", i.String(), "every", f.polling.every, "error", err)
		m.unwatched = append(m.unwatched, unwatched{i, causeOf(err)})
	}
	f.polling.reason, f.polling.next = err, time.Now().Add(f.polling.every)
	m.polled[i] = f
}

// causeOf returns an error without its point.
func causeOf(err error) error {
	var at *watch.PointError
	if errors.As(err, &at) {
		return at.Err
	}

	return err
}

// logUnwatched logs the resources that became polled, in one line for each manifest and cause.
func (m *Monitor) logUnwatched() {
	slices.SortFunc(m.unwatched, func(a, b unwatched) int {
		return cmp.Or(cmp.Compare(a.id.key, b.id.key), cmp.Compare(a.cause.Error(), b.cause.Error()), a.id.compare(b.id))
	})
	for rest := m.unwatched; len(rest) > 0; {
		first := rest[0]
		count := 1
		for count < len(rest) && rest[count].id.key == first.id.key && rest[count].cause.Error() == first.cause.Error() {
			count++
		}
		m.o.Log.Warn("resources polled, they cannot be watched", "manifest", first.id.key, "count", count, "resources", namesOf(rest[:count]), "error", first.cause)
		rest = rest[count:]
	}
	m.unwatched = nil
}

func namesOf(all []unwatched) string {
	var names []string
	for _, u := range all[:min(len(all), maxNamed)] {
		names = append(names, u.id.String())
	}
	if len(all) > maxNamed {
		names = append(names, "…")
	}

	return strings.Join(names, ", ")
}
