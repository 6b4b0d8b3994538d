// Package watch sends a node its assignments and control documents, without a JetStream consumer. The
// server republishes the headers of each change, and the node then reads the changed keys by direct
// get. Lost or forged announcements do no harm, because the node compares the sequences with the
// bucket at start, after each reconnect and at regular intervals.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Options configure a Watch. Zero values select the defaults.
type Options struct {
	Node   string
	Groups []string
	// Audit is the longest time for which a change may stay unnoticed. The default is 5 minutes.
	Audit time.Duration
	// GroupJitter spreads the reads of the nodes of a group, and of all nodes after a server restart.
	// The default is 1 second.
	GroupJitter time.Duration
	// Gone is how long a key must be missing until it counts as purged. The default is 30 seconds.
	Gone time.Duration
	// Retry is the first pause after a failure. The pause grows up to 30 times that. The default is 1
	// second.
	Retry time.Duration
	// Log receives messages for administrators.
	Log *slog.Logger
	// Rand returns numbers in [0, 1) for the jitter.
	Rand func() float64
}

// Watch follows the assignments or the control documents of one node and reads the values of its keys.
// It uses no JetStream consumer. All methods except Run are safe for concurrent use. Make one with New
// or NewControl.
type Watch struct {
	store  *kvstore.Store
	o      Options
	bucket bucket
	table  table

	mu     sync.Mutex
	groups []string
	// regroup ends the loop so that another one starts with new groups. It is nil before Run.
	regroup context.CancelFunc
}

// New returns the watch for the assignments of a node. It sends no request.
func New(s *kvstore.Store, o Options) *Watch { return of(s, manifests(s.Names), o) }

// NewControl returns the watch for the control documents of a node. A fleet without that bucket has no
// documents.
func NewControl(s *kvstore.Store, o Options) *Watch { return of(s, control(s.Names), o) }

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

// Entries returns the active keys and revisions, and the state of the synchronization. It returns no
// entries before Run. Entries have no values, see Read. The caller owns the map.
func (w *Watch) Entries() (map[string]model.Entry, model.Sync) { return w.table.all() }

// Memory returns the state that a restarted process needs.
func (w *Watch) Memory() model.Memory {
	entries, state := w.Entries()

	return model.Memory{Entries: entries, Stream: state.Stream, Kept: state.Kept}
}

// Run watches until the context ends. last is the Memory of an earlier process and counts in the first
// call. The error wraps model.ErrInvalidName, or reports a closed connection. Run may be called again.
// It calls wake with the changed keys. It calls wake without keys when everything is known for the
// first time, and when only the errors in Sync changed. wake runs in the goroutine of Run and must not
// block.
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

// begin returns a loop for the current groups. stop ends that loop when the groups change.
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

// SetGroups replaces the groups of the node. Sync is incomplete until the keys of the new groups are
// read.
func (w *Watch) SetGroups(groups []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups = groups
	if w.regroup != nil {
		w.regroup()
	}
}

// Read returns the value of a key at the given or a later revision. If the watch has not just read the
// value, Read asks the server and waits for a lagging replica. The error wraps model.ErrNotFound if
// the bucket lacks the key. A value that must not be used has Refused set.
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
		known, _ := w.table.get(key) // its newest value is unreadable
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

// Removal reads the message that removed a key. The entry is not Deleted if the key has a value again.
// The error wraps model.ErrNotFound if the bucket has neither.
func (w *Watch) Removal(ctx context.Context, key string) (model.Entry, error) {
	m, err := w.store.Last(ctx, w.bucket.stream(), w.bucket.subject(key))
	if err != nil {
		return model.Entry{}, err
	}

	e := kvstore.NewEntry(key, m)
	e.Deleted = e.Deleted && !m.Forged // a forged message removes nothing

	return e, nil
}

// bucket describes the watched key-value bucket. The server republishes the headers of its changes.
type bucket struct {
	name string
	// values names the values of the bucket in log messages.
	values string
	// isKey reports whether nodes read a key.
	isKey func(key string) bool
	// changed returns the subject for the changes of a family. announced returns the key of such a
	// subject.
	changed   func(family string) string
	announced func(subject string) (key string, ok bool)
	// isOptional reports whether a fleet works without the bucket.
	isOptional bool
	// isMain marks the one watch of a connection that reconnects after a denied subscription and logs
	// refused answers.
	isMain bool
	// inOrder reads announced keys in the order of their changes: a resume must not overtake an
	// earlier pause.
	inOrder bool
}

func manifests(n kvstore.Names) bucket {
	return bucket{
		name: n.Manifests, values: "assignments", isMain: true,
		isKey:   func(key string) bool { return !kvstore.IsInvalidKey(key) },
		changed: func(family string) string { return n.Changed(model.Key(family, ">")) },
		announced: func(subject string) (string, bool) {
			if _, is := n.ControlKey(subject); is {
				return "", false
			}
			return n.ChangedKey(subject)
		},
	}
}

func control(n kvstore.Names) bucket {
	return bucket{
		name: n.Control, values: "control documents", isKey: model.IsControlKey, isOptional: true, inOrder: true,
		changed:   func(family string) string { return n.ControlChanged(family, "*") },
		announced: n.ControlKey,
	}
}

func (b bucket) stream() string { return kvstore.KVStream(b.name) }

// subject returns the subject of a key, which may be a wildcard. key is the inverse.
func (b bucket) subject(key string) string { return kvstore.KVSubject(b.name, key) }
func (b bucket) key(subject string) string { return strings.TrimPrefix(subject, b.subject("")) }
