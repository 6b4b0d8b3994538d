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

// DocumentSource is the bucket as far as it concerns the node.
type DocumentSource interface {
	// Entries returns the keys as they are known now, without values.
	Entries() (map[string]model.Entry, model.Sync)
	// Read reads a key at a revision or a later one. Every error may pass; it wraps
	// model.ErrNotFound when the bucket does not hold the key.
	Read(ctx context.Context, key string, revision uint64) (model.Entry, error)
	// Removal returns the message that ended a key, not deleted where there is a value again.
	// Every error may pass, except model.ErrNotFound: there is no such message.
	Removal(ctx context.Context, key string) (model.Entry, error)
}

// Gate judges pauses and groups.
type ControlJudge interface {
	// Demands reports whether signatures are demanded.
	Demands() bool
	// Pause judges the pause of a family, or the message that ended it. The error is
	// model.Problems where trying again does not help.
	Pause(ctx context.Context, e model.Entry, family string) error
	// Groups judges the groups of a node, or the message that ended them. The error is that of
	// Pause.
	Groups(ctx context.Context, e model.Entry, family string) error
}

// Clock judges when a pause ends.
type ControlClock interface {
	// Until returns how long it is until a time, of what is signed or not; zero or less
	// when that is over.
	Until(at time.Time, signed bool) time.Duration
}

// ControlOptions are what a Control is made from.
type ControlOptions struct {
	Host *host.Host
	// Path is the file of what was accepted; empty keeps that in memory alone, without Host.
	Path string
	// Source is nil where there is no bucket.
	Source DocumentSource
	Gate   ControlJudge
	Clock  ControlClock
	// Families returns those of the node now.
	Families func() []string
	// Changed is called by Run when something may be another one. It must not block.
	Changed func()
	// Rejected reports a document that was rejected, once.
	Rejected func(why string)
	Log      *slog.Logger
}

// Control is what operators wrote about the node. Its methods may be called from several
// goroutines, Run from one. Make it with Open.
type Control struct {
	o     ControlOptions
	store controlStore
	wake  tasks.Signal
	// unstored is that what is on disk is not what is known; Run alone has it.
	unstored bool

	mu sync.Mutex
	// documents are those in force, by key.
	documents map[string]controlDocument
	// rejected are the documents that were rejected, by key, each reported once.
	rejected map[string]controlRejection
	bucket   controlBucketRecord
	settled  bool
	// unread is why the bucket cannot be read, nil when it can.
	unread error
}

// controlRejection is a revision that was rejected, and why.
type controlRejection struct {
	revision uint64
	at       time.Time
	why      string
}

// OpenControl reads what is on disk: it is in force before the bucket is read. A document there that
// cannot be read is logged and left out, the bucket has it.
func OpenControl(o ControlOptions) (*Control, error) {
	c := &Control{o: o, store: controlStore{o.Host, o.Path}, wake: tasks.NewSignal(), documents: map[string]controlDocument{}, rejected: map[string]controlRejection{}, settled: o.Source == nil}
	kept, err := c.store.read(o.Log)
	if err != nil {
		return nil, err
	}
	c.bucket = kept.controlBucketRecord
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

// Memory returns what the watch of the bucket must know of an earlier process.
func (c *Control) Memory() model.Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := model.Memory{Entries: map[string]model.Entry{}, Stream: c.bucket.Stream, Kept: c.bucket.Kept}
	for key, d := range c.documents {
		m.Entries[key] = model.Entry{Key: key, Revision: d.entry.Revision, Time: d.entry.Time}
	}

	return m
}

// IsSettled reports whether the bucket was read, or cannot be read now.
func (c *Control) IsSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.settled
}

// Paused returns the pause that holds, of several the one that ends last; nil for none.
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

// PausedBy returns the revisions of all pauses in force, by key; nil for none.
func (c *Control) PausedBy() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out map[string]uint64
	for key, d := range c.documents {
		if d.pause == nil || c.left(d.pause) <= 0 {
			continue
		}
		if out == nil {
			out = map[string]uint64{}
		}
		out[key] = d.entry.Revision
	}

	return out
}

// forever is how long a pause is that does not end by itself.
const forever = time.Duration(1<<63 - 1)

// left returns how long a pause goes on.
func (c *Control) left(p *model.Pause) time.Duration {
	if p.Until.IsZero() {
		return forever
	}

	return c.o.Clock.Until(p.Until, c.o.Gate.Demands())
}

// Labels returns those that operators gave the node.
func (c *Control) Labels() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]string{}
	for _, d := range c.documents {
		maps.Copy(out, d.labels)
	}

	return out
}

// Groups returns the groups that operators put the node into, sorted by name, and their order.
func (c *Control) Groups() (out model.Groups) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.documents {
		out.Groups, out.Order = append(out.Groups, d.groups.Groups...), append(out.Order, d.groups.Order...)
	}
	slices.Sort(out.Groups)

	return out
}

// Unread returns why the bucket cannot be read, nil when it can. That may pass.
func (c *Control) Unread() error {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.unread
}

// Rejected returns why documents were rejected, by key; nil for none.
func (c *Control) Rejected() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rejected) == 0 {
		return nil
	}
	out := map[string]string{}
	for key, r := range c.rejected {
		out[key] = strings.TrimPrefix(r.why, key+": ")
	}

	return out
}

// Show calls set with the pause that holds, the revisions of all pauses by key, the labels, why documents were
// rejected, by key, and why the bucket cannot be read; empty if it can be read.
func (c *Control) Show(set func(paused *model.Paused, by map[string]uint64, labels, rejected map[string]string, unread string)) {
	unread := ""
	if err := c.Unread(); err != nil {
		unread = bounds.Text("what operators write about the node cannot be read: " + err.Error())
	}
	set(c.Paused(), c.PausedBy(), c.Labels(), c.Rejected(), unread)
}

// Wake has Run look at the bucket, and at the time, again.
func (c *Control) Wake() { c.wake.Notify() }

// Rejudge is Wake where what was rejected may pass now, because something else is demanded.
func (c *Control) Rejudge() {
	c.mu.Lock()
	clear(c.rejected)
	c.mu.Unlock()
	c.wake.Notify()
}

// longestWait is how long Run waits at most.
const longestWait = time.Hour

// Run keeps everything current until ctx ends. What cannot be read is tried again.
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

// next returns how long it is until the first pause ends.
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
