// Package desired contains the desired state of a node. Set owns the assignments: it reads the values of the
// keys that the watch names, resolves them, selects the active version of each name, and stores the last good
// copy of each on disk. Bundles downloads and unpacks bundles. Gate verifies signatures. Control contains the
// pauses, labels and groups from operators.
package desired

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// ValueSource reads the values of keys.
type ValueSource interface {
	// Read reads a key at a revision or a later one. All errors are transient. The error wraps
	// model.ErrNotFound if the bucket does not have the key.
	Read(ctx context.Context, key string, revision uint64) (model.Entry, error)
	// Removal returns the message that removed a key, or a value if the key has one again. All errors
	// are transient except model.ErrNotFound: there is no message.
	Removal(ctx context.Context, key string) (model.Entry, error)
}

// Loader creates resources from manifests. *manifest.Loader implements it.
type Loader interface {
	Resolve(ctx context.Context, doc *manifest.Document, in manifest.Inputs) (*manifest.Resolved, error)
	Condition(ctx context.Context, name string, v document.Value, in manifest.Inputs) (bool, error)
}

// Clock decides when assignments and pauses end.
type Clock interface {
	// Until returns the time until a time, signed or not; zero or less if it is over.
	Until(at time.Time, signed bool) time.Duration
}

// SetOptions configure a Set.
type SetOptions struct {
	Host *host.Host
	// Dir is the state directory of the node.
	Dir     string
	Source  ValueSource
	Gate    *Gate
	Clock   Clock
	Bundles BundleSource
	// Arrived is called by any goroutine when Sync can continue with a bundle.
	Arrived func()
	Loader  Loader
	Log     *slog.Logger
}

// Set contains the assignments of a node. One goroutine owns it and calls its methods, unless a method says
// otherwise. Create it with OpenSet. Close stops its downloads.
type Set struct {
	// Messages is notified when Handle has work.
	Messages tasks.Signal

	o       SetOptions
	store   *assignmentStore
	bundles *Bundles
	units   map[string]*unit
	// order contains the units with an active version in run order.
	order  []*unit
	bucket bucketRecord
	held   holds
	inbox  inbox
}

// OpenSet reads the stored assignments. No version is active before Sync.
func OpenSet(o SetOptions) (*Set, error) {
	store, err := openAssignments(o.Host, o.Dir, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Set{o: o, store: store, units: map[string]*unit{}, Messages: tasks.NewSignal(), bundles: &Bundles{Host: o.Host, Source: o.Bundles, Dir: filepath.Join(o.Dir, "bundles"), Arrived: o.Arrived, Log: o.Log}}
	if s.bucket, err = store.bucket(); err != nil {
		return nil, err
	}
	records, err := store.all()
	for _, r := range records {
		s.unit(r.Key).record = r
	}

	return s, err
}

// Close stops the downloads of bundles.
func (s *Set) Close(ctx context.Context) { s.bundles.Close(ctx) }

func (s *Set) unit(key string) *unit {
	u, ok := s.units[key]
	if !ok {
		u = newUnit(key)
		s.units[key] = u
	}

	return u
}

// Memory returns the stored state for the watch: the keys and revisions on disk, and their bucket.
func (s *Set) Memory() model.Memory {
	m := model.Memory{Entries: map[string]model.Entry{}, Stream: s.bucket.Stream, Kept: s.bucket.Kept}
	for key, u := range s.units {
		for _, e := range []*model.Entry{u.record.Good, u.record.Newest} {
			if e != nil {
				m.Entries[key] = model.Entry{Key: key, Revision: e.Revision, Time: e.Time}
			}
		}
	}

	return m
}

// holds counts the runs with a bundle, by digest.
type holds struct {
	mu   sync.Mutex
	runs map[string]int
	// leftover means that only runs use a bundle.
	leftover bool
}

// Hold prevents the removal of an unpacked bundle, empty for none, until release, because a run uses it. Any
// goroutine may call both.
func (s *Set) Hold(digest string) (release func()) {
	s.held.mu.Lock()
	defer s.held.mu.Unlock()
	if s.held.runs == nil {
		s.held.runs = map[string]int{}
	}
	s.held.runs[digest]++

	return func() {
		s.held.mu.Lock()
		defer s.held.mu.Unlock()
		if s.held.runs[digest]--; s.held.runs[digest] > 0 {
			return
		}
		delete(s.held.runs, digest)
		if s.held.leftover {
			s.send(true, func(ctx context.Context, t *turn) { t.RemoveBundles(ctx) })
		}
	}
}

// next returns the time when Sync has work without a change of the bucket: a retry, or the end of an
// assignment. Zero is never.
func (s *Set) next() (next time.Time) {
	for _, u := range s.units {
		next = model.EarlierNonZero(next, u.retry.at)
		if u.active != nil && !u.active.Expires.IsZero() {
			next = model.EarlierNonZero(next, time.Now().Add(s.untilEnd(u.active)))
		}
	}

	return next
}

func (s *Set) untilEnd(v *Version) time.Duration {
	return s.o.Clock.Until(v.Expires, s.o.Gate.Demands())
}

// RetryNow makes all transient errors due, and permanently rejected values are checked again, because the
// trusted keys may have changed.
func (s *Set) RetryNow(now time.Time) {
	for _, u := range s.units {
		u.rejudge = u.never != nil
		if !u.retry.at.IsZero() {
			u.retry.at = now
			u.retry.wait.Reset()
		}
	}
}

// save writes changed records to disk. It logs a failed write: the node continues with its memory.
func (s *Set) save(ctx context.Context) {
	for _, key := range slices.Sorted(maps.Keys(s.units)) {
		u := s.units[key]
		if !u.unsaved {
			continue
		}
		if err := s.store.write(ctx, u.record); err != nil {
			s.o.Log.ErrorContext(ctx, "cannot store assignment, it would be missing after a restart without NATS", "manifest", u.key, "error", err)
			continue
		}
		u.unsaved = false
	}
}

// inbox contains messages from other goroutines to the owner of the Set.
type inbox struct {
	mu       sync.Mutex
	messages []func(context.Context, *turn)
	// urgent reports whether a message woke the owner.
	urgent bool
}

// send queues a message for Handle. wake wakes the owner; other messages can wait.
func (s *Set) send(wake bool, message func(context.Context, *turn)) {
	s.inbox.mu.Lock()
	s.inbox.messages = append(s.inbox.messages, message)
	s.inbox.urgent = s.inbox.urgent || wake
	s.inbox.mu.Unlock()
	if wake {
		s.Messages.Notify()
	}
}

// HasMessages reports whether Handle has work. Any goroutine may call it.
func (s *Set) HasMessages() bool {
	s.inbox.mu.Lock()
	defer s.inbox.mu.Unlock()

	return s.inbox.urgent
}

func (b *inbox) take() []func(context.Context, *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.messages
	b.messages, b.urgent = nil, false

	return all
}

// Handle processes the messages from other goroutines. It reads nothing from NATS.
func (s *Set) Handle(ctx context.Context, in Input) Result {
	t := s.turn(in)
	t.handle(ctx)
	t.conclude()
	s.save(ctx)

	return t.result
}

func (t *turn) handle(ctx context.Context) {
	for _, message := range t.inbox.take() {
		message(ctx, t)
	}
}

// Applied records that a version was applied, for the next start of the agent.
func (s *Set) Applied(v *Version) {
	s.send(true, func(_ context.Context, t *turn) {
		if u := t.activeUnit(v); u != nil && u.record.Applied != v.sum {
			u.record.Applied, u.unsaved = v.sum, true
		}
	})
}

// Restore asks to download the damaged bundle of a version again. Handle or Sync lists the key as
// Restored when its runs need not wait any longer, even if the bundle is still damaged.
func (s *Set) Restore(v *Version) {
	s.send(true, func(ctx context.Context, t *turn) {
		u := t.activeUnit(v)
		if u == nil {
			return
		}
		t.result.Changed = true
		if err := t.bundles.Restore(ctx, u.key, u.active.Bundle); err != nil {
			u.stale = reasonOf(err)
			return
		}
		t.refresh(ctx, u)
		t.result.Restored = append(t.result.Restored, u.key)
	})
}

// Resolve resolves an active version again. Any goroutine may call it. The caller passes the result
// to Resolved.
func (s *Set) Resolve(ctx context.Context, v Version, in Input) (fresh *Resolution, err error) {
	unpacked := func(context.Context, string, string) (string, []byte, error) {
		text, err := ReadManifest(v.Resolution.Dir)
		return v.Resolution.Dir, text, err
	}
	err = tasks.Guard(s.o.Log, "reading "+v.Entry.Key, func() (err error) {
		fresh, err = (&turn{Set: s, in: in}).resolve(ctx, &v, unpacked)
		return err
	})

	return fresh, err
}

// Resolved sends the result of Resolve for a version to the owner.
func (s *Set) Resolved(v *Version, fresh *Resolution, err error) {
	s.send(err != nil, func(ctx context.Context, t *turn) {
		u := t.activeUnit(v)
		switch {
		case u == nil:
		case err != nil:
			u.stale = t.handleInvalid(ctx, u, u.active.Entry, err)
			t.result.Changed = true
		default:
			t.result.Changed = t.result.Changed || !u.stale.isZero()
			u.refreshed(ctx, t.o.Log, fresh)
		}
	})
}

// activeUnit returns the unit in which a version is active, nil for none.
func (s *Set) activeUnit(v *Version) *unit {
	if u := s.units[v.Entry.Key]; u != nil && u.active.sameAs(v) {
		return u
	}

	return nil
}

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
	taken := plan.Claims{}
	for _, v := range w.order {
		if key := v.Entry.Key; counts(key) {
			taken.Add(key, v.Resolution.Resources)
		}
	}

	return taken.Conflicts
}
