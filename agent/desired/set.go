package desired

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// ValueSource reads the values of keys.
type ValueSource interface {
	// Read reads a key at a revision or a later one. All errors are transient. The error wraps
	// model.ErrNotFound if the bucket does not have the key.
	Read(ctx context.Context, key string, revision uint64) (model.Entry, error)
	// Removal returns the message that removed an assignment, or a value if the key has one again. All errors
	// are transient except model.ErrNotFound: there is no message.
	Removal(ctx context.Context, key string) (model.Entry, error)
}

// Loader creates resources from manifests. *manifest.Loader implements it.
type Loader interface {
	Resolve(ctx context.Context, doc *manifest.Document, in manifest.Inputs) (*manifest.Resolved, error)
	Condition(ctx context.Context, name string, v document.Value, in manifest.Inputs) (bool, error)
}

// Gate verifies signatures.
type Judge interface {
	// Demands reports whether signatures are required.
	Demands() bool
	// Assignment verifies a value, which may already be accepted. Permanent errors are model.Problems.
	Assignment(ctx context.Context, e model.Entry, before bool) error
	// Never returns the permanent reason why Assignment rejects a value, as model.Problems. It is nil if the
	// result depends on the time.
	Never(ctx context.Context, e model.Entry) error
	// Removal verifies the removal of an assignment, like Assignment.
	Removal(ctx context.Context, e model.Entry) error
}

// Clock decides when assignments end.
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
	Gate    Judge
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
	warned *warnings
	held   holds
	inbox  inbox
}

// OpenSet reads the stored assignments. No version is active before Sync.
func OpenSet(o SetOptions) (*Set, error) {
	store, err := openAssignments(o.Host, o.Dir, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Set{o: o, store: store, units: map[string]*unit{}, Messages: tasks.NewSignal(), warned: newWarnings(), bundles: &Bundles{Host: o.Host, Source: o.Bundles, Dir: filepath.Join(o.Dir, "bundles"), Arrived: o.Arrived, Log: o.Log}}
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

// warnings are the last logged warnings by key.
type warnings struct {
	mu    sync.Mutex
	texts map[string]string
}

func newWarnings() *warnings { return &warnings{texts: map[string]string{}} }

// isNew reports whether a text differs from the last one of a revision.
func (w *warnings) isNew(e model.Entry, text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	text = fmt.Sprint(e.Revision, text)
	before := w.texts[e.Key]
	w.texts[e.Key] = text

	return before != text
}

func (w *warnings) forget(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.texts, key)
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

// untilEnd returns the time until a version expires.
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

// conflicts returns the resources that an active manifest of another key declares differently.
func (s *Set) conflicts(key string, found []*resource.Resource) model.Problems {
	taken := graph.Claims{}
	for _, u := range s.order {
		if u.key != key {
			taken.Add(u.key, u.active.Resolution.Resources)
		}
	}

	return taken.Conflicts(found)
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
