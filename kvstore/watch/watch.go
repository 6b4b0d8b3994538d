package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Options are what a node watches, and how often it audits. Zero values are the
// defaults named.
type Options struct {
	Node   string
	Groups []string
	// Audit is how long a change can stay unseen at most: 5 minutes.
	Audit time.Duration
	// GroupJitter is over how long the nodes of a group, or of a server that
	// restarted, spread what they ask: 1 second.
	GroupJitter time.Duration
	// Gone is how long a key must be missing until it counts as purged: 30 seconds.
	Gone time.Duration
	// Retry is how long a node waits after the server did not answer, at first,
	// and then up to 30 times that: 1 second.
	Retry time.Duration
	// Log gets what an administrator should see.
	Log *slog.Logger
	// Rand returns numbers in [0, 1) for the jitter.
	Rand func() float64
}

// Watch follows what is assigned to one node, or what operators write about it, also when its
// groups change, and reads the values of its keys, without a consumer. Its methods but for Run may be
// called at any time from any goroutine. Make it with New.
type Watch struct {
	store  *kvstore.Store
	o      Options
	bucket bucket
	table  table

	mu     sync.Mutex
	groups []string
	// regroup ends the loop, to begin another one with other groups; nil before Run.
	regroup context.CancelFunc
}

// New returns the watch of what is assigned to a node; it asks the server nothing yet.
func New(s *kvstore.Store, o Options) *Watch { return of(s, manifests(s.Names()), o) }

// NewControl returns the watch of what operators write about a node. Where the fleet has no
// bucket for that there is nothing.
func NewControl(s *kvstore.Store, o Options) *Watch { return of(s, control(s.Names()), o) }

func of(s *kvstore.Store, b bucket, o Options) *Watch {
	return &Watch{store: s, bucket: b, o: o.withDefaults(), groups: o.Groups, table: table{isKey: b.isKey}}
}

func (o Options) withDefaults() Options {
	o.Audit = cmp.Or(o.Audit, 5*time.Minute)
	o.GroupJitter = cmp.Or(o.GroupJitter, time.Second)
	o.Gone = cmp.Or(o.Gone, 30*time.Second)
	o.Retry = cmp.Or(o.Retry, time.Second)
	if o.Rand == nil {
		o.Rand = rand.Float64
	}

	return o
}

// Entries returns the keys and revisions that are in force now, and how sure that
// is; nothing before Run. Entries have no values: Read returns them. The map is the caller's.
func (w *Watch) Entries() (map[string]model.Entry, model.Sync) { return w.table.all() }

// Memory returns what to keep over a restart.
func (w *Watch) Memory() model.Memory {
	entries, state := w.Entries()

	return model.Memory{Entries: entries, Stream: state.Stream, Kept: state.Kept}
}

// Run watches until the context ends. last is what an earlier process knew; it
// counts at the first call. The error wraps model.ErrInvalidName, or is that the
// connection was closed for good; Run may be called again. wake is called with the
// keys that changed, and without any when everything is known for the first time,
// and when only the errors in Sync changed. It is called from Run's goroutine and
// must not block.
func (w *Watch) Run(ctx context.Context, last model.Memory, wake func(keys []string)) error {
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(ctx)
		l, err := w.begin(last, stop)
		if err == nil {
			err = l.run(watching, wake)
		}
		groupsChanged := watching.Err() != nil
		stop()
		if err != nil {
			return fmt.Errorf("watch %s: %w", w.o.Node, err)
		}
		if !groupsChanged {
			return nil
		}
	}

	return nil
}

// begin makes the loop of the current groups; stop ends it when they change.
func (w *Watch) begin(last model.Memory, stop context.CancelFunc) (*loop, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := model.CheckNode(w.o.Node, w.groups); err != nil {
		return nil, err
	}
	if w.regroup != nil {
		last = w.Memory()
	}
	w.regroup = stop
	o := w.o
	o.Groups = w.groups
	families := model.Families(o.Node, o.Groups)
	w.table.recall(last, families)

	return newLoop(w.store, w.bucket, o, families, &w.table), nil
}

// SetGroups replaces the groups of the node; Sync is not complete before their
// keys were read.
func (w *Watch) SetGroups(groups []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = groups
	if w.regroup != nil {
		w.regroup()
	}
}

// Read returns the value of a key at a revision or a later one. It asks the server only where
// the watch has not just read the value; it asks a lagging replica again for a while. The error
// wraps model.ErrNotFound when the bucket does not hold the key. Refused says why a value must
// not be used.
func (w *Watch) Read(ctx context.Context, key string, revision uint64) (model.Entry, error) {
	if m, found := w.table.takeFresh(key, revision); found {
		return kvstore.NewEntry(key, m), nil
	}
	var m kvstore.Message
	err := kvstore.UntilCurrent(ctx, func(last bool) (done bool, err error) {
		m, err = w.store.Value(ctx, w.bucket.stream(), w.bucket.subject(key))
		return last || m.Sequence >= revision, err
	})
	switch {
	case errors.Is(err, kvstore.ErrUnreadable):
		known, _ := w.table.get(key) // what it is now called nobody can read
		known.Entry.Refused = kvstore.ErrUnreadable.Error()
		return known.Entry, nil
	case errors.Is(err, kvstore.ErrServerHeaders):
		e := kvstore.NewEntry(key, m)
		e.Refused, e.Deleted = kvstore.ErrServerHeaders.Error(), false
		return e, nil
	case err != nil:
		return model.Entry{}, err
	default:
		return kvstore.NewEntry(key, m), nil
	}
}

// Removal reads the message that ended a key, with what it holds; not deleted where
// there is a value again. The error wraps model.ErrNotFound where the bucket has
// neither.
func (w *Watch) Removal(ctx context.Context, key string) (model.Entry, error) {
	m, err := w.store.Last(ctx, w.bucket.stream(), w.bucket.subject(key))
	if err != nil {
		return model.Entry{}, err
	}

	e := kvstore.NewEntry(key, m)
	e.Deleted = e.Deleted && !m.Forged // which ends nothing

	return e, nil
}
