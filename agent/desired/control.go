package desired

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

// DocumentSource reads the control documents of the node.
type DocumentSource interface {
	ValueSource
	// Entries returns the known keys, without values.
	Entries() (map[string]model.Entry, model.Sync)
}

// ControlOptions configure a Control.
type ControlOptions struct {
	Host *host.Host
	// Path is the file of the accepted documents. If it is empty, they are only in memory, without Host.
	Path string
	// Source is nil if there is no bucket.
	Source   DocumentSource
	Gate     *Gate
	Clock    Clock
	Families func() []string
	// Changed is called by Run after possible changes. It must not block.
	Changed func()
	// Rejected reports a rejected document, once.
	Rejected func(why string)
	Log      *slog.Logger
}

// Control contains the pauses, labels and groups from operators. It is safe for concurrent use; one goroutine
// calls Run. Create it with OpenControl.
type Control struct {
	o     ControlOptions
	store controlStore
	wake  tasks.Signal
	// unstored means that memory and disk differ. Only Run uses it.
	unstored bool

	mu        sync.Mutex
	documents map[string]controlDocument
	// rejected are the rejected documents by key. Each is reported once.
	rejected map[string]controlRejection
	bucket   bucketRecord
	settled  bool
	// unread is the reason why the bucket cannot be read, nil if it can.
	unread error
}

type controlRejection struct {
	revision uint64
	at       time.Time
	why      string
}

// OpenControl reads the stored documents, which are active before the bucket is read. It logs and skips an
// unreadable document, because the bucket has it.
func OpenControl(o ControlOptions) (*Control, error) {
	c := &Control{o: o, store: controlStore{o.Host, o.Path}, wake: tasks.NewSignal(), documents: map[string]controlDocument{}, rejected: map[string]controlRejection{}, settled: o.Source == nil}
	kept, err := c.store.read(o.Log)
	if err != nil {
		return nil, err
	}
	c.bucket = kept.bucketRecord
	for key, e := range kept.Keys {
		d, err := decode(e)
		if err != nil || e.Key != key {
			o.Log.Warn("stored control document ignored", "key", key, "error", err)
			continue
		}
		c.documents[key] = d
	}

	return c, nil
}

// Memory returns the stored state for the watch of the bucket.
func (c *Control) Memory() model.Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := model.Memory{Entries: map[string]model.Entry{}, Stream: c.bucket.Stream, Kept: c.bucket.Kept}
	for key, d := range c.documents {
		m.Entries[key] = model.Entry{Key: key, Revision: d.entry.Revision, Time: d.entry.Time}
	}

	return m
}

// IsSettled reports whether the bucket was read or cannot be read now.
func (c *Control) IsSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.settled
}

// Paused returns the active pause that ends last, nil for none.
func (c *Control) Paused() *model.Paused {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out *model.Paused
	for _, key := range slices.Sorted(maps.Keys(c.documents)) {
		p := c.documents[key].pause
		if p == nil || c.left(p) <= 0 {
			continue
		}
		if out == nil || !out.Until.IsZero() && (p.Until.IsZero() || p.Until.After(out.Until)) {
			out = &model.Paused{Until: p.Until, By: p.By, Reason: p.Reason, At: p.At, From: key}
		}
	}

	return out
}

// forever is the remaining time of a pause without an end.
const forever = time.Duration(1<<63 - 1)

func (c *Control) left(p *model.Pause) time.Duration {
	if p.Until.IsZero() {
		return forever
	}

	return c.o.Clock.Until(p.Until, c.o.Gate.Demands())
}

// Groups returns the operators' groups of the node, sorted by name, and their order.
func (c *Control) Groups() (out model.Groups) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.documents {
		out.Groups, out.Order = append(out.Groups, d.groups.Groups...), append(out.Order, d.groups.Order...)
	}
	slices.Sort(out.Groups)

	return out
}

// Show calls set with the active pause, the revisions of all pauses by key, the labels, the reasons for
// rejected documents by key, and the reason why the bucket cannot be read, empty if it can.
func (c *Control) Show(set func(paused *model.Paused, by map[string]uint64, labels, rejected map[string]string, unread string)) {
	paused := c.Paused()
	by, labels, rejected, unread := map[string]uint64{}, map[string]string{}, map[string]string{}, ""
	c.mu.Lock()
	for key, d := range c.documents {
		if d.pause != nil && c.left(d.pause) > 0 {
			by[key] = d.entry.Revision
		}
		maps.Copy(labels, d.labels)
	}
	for key, r := range c.rejected {
		rejected[key] = strings.TrimPrefix(r.why, key+": ")
	}
	if c.unread != nil {
		unread = bounds.Text("what operators write about the node cannot be read: " + c.unread.Error())
	}
	c.mu.Unlock()
	set(paused, by, labels, rejected, unread)
}

// Wake makes Run check the bucket and the time again.
func (c *Control) Wake() { c.wake.Notify() }

// Rejudge makes Run check rejected documents again, because the policy changed.
func (c *Control) Rejudge() {
	c.mu.Lock()
	clear(c.rejected)
	c.mu.Unlock()
	c.wake.Notify()
}

// longestWait limits the wait of Run.
const longestWait = time.Hour

// Run keeps the documents current until ctx ends. It retries failed reads.
func (c *Control) Run(ctx context.Context) error {
	var again tasks.Backoff
	for ctx.Err() == nil {
		wait := longestWait
		if err := c.sync(ctx); err != nil {
			wait = again.Next()
			c.o.Log.DebugContext(ctx, "cannot take over control documents, will retry", "error", err, "retry", wait)
		} else {
			again.Reset()
		}
		c.o.Changed()
		tasks.Pause(ctx, min(wait, c.next()), c.wake)
	}

	return nil
}

// next returns the time until the first pause ends.
func (c *Control) next() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := longestWait
	for _, d := range c.documents {
		if d.pause == nil {
			continue
		}
		if left := c.left(d.pause); left > 0 {
			out = min(out, left)
		}
	}

	return out
}
