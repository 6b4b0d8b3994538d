package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

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
	// ListEvery is how often keys are listed for such as no index names: 1 hour.
	ListEvery time.Duration
	// Retry is how long a node waits after the server did not answer, at first,
	// and then up to 30 times that: 1 second.
	Retry time.Duration
	// Last is what an earlier watch of the node knew, see Watch.Memory.
	Last model.Memory
	// Log gets what an administrator should see; nil discards.
	Log *slog.Logger
	// Now is the clock of Sync; Rand returns numbers in [0, 1) for the jitter.
	Now  func() time.Time
	Rand func() float64
}

// Watch knows what is assigned to one node, without a consumer. Entries may be
// called at any time from any goroutine.
type Watch struct {
	store    *kvstore.Store
	o        Options
	families []string
	bucket   string

	mu      sync.Mutex
	entries map[string]held
	sync    model.Sync
}

// held is an entry in force, with the stream it was last seen in.
type held struct {
	model.Entry
	stream time.Time
}

// New returns the watch of a node; it asks the server nothing yet, and its
// Entries are those of options. The error wraps model.ErrInvalidName.
func New(s *kvstore.Store, o Options) (*Watch, error) {
	if err := model.CheckNode(o.Node, o.Groups); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	w := &Watch{store: s, o: o, families: model.Families(o.Node, o.Groups), bucket: s.Names().Manifests(), entries: map[string]held{}}
	w.remember(o.Last)

	return w, nil
}

// remember takes over what is still of a family of the node. What the bucket did
// not have then must not count as taken away from the node now.
func (w *Watch) remember(m model.Memory) {
	w.sync.Stream = m.Stream
	for key, e := range m.Entries {
		e.Family, e.Name, _ = model.SplitKey(key)
		switch {
		case !slices.Contains(w.families, e.Family) || key != e.Key:
		case slices.Contains(m.Kept, key):
			w.entries[key] = held{Entry: e}
			w.sync.Kept = append(w.sync.Kept, key)
		default:
			w.entries[key] = held{Entry: e, stream: m.Stream}
		}
	}
	slices.Sort(w.sync.Kept)
}

func (o Options) withDefaults() Options {
	o.Audit = cmp.Or(o.Audit, 5*time.Minute)
	o.GroupJitter = cmp.Or(o.GroupJitter, time.Second)
	o.ListEvery = cmp.Or(o.ListEvery, time.Hour)
	o.Retry = cmp.Or(o.Retry, time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Float64
	}

	return o
}

// Entries returns the keys and revisions that are in force now, and how sure that
// is. Entries have no values: who is woken reads them. The map is the caller's.
func (w *Watch) Entries() (map[string]model.Entry, model.Sync) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries := make(map[string]model.Entry, len(w.entries))
	for key, h := range w.entries {
		entries[key] = h.Entry
	}

	return entries, w.sync
}

// Memory returns what to keep over a restart.
func (w *Watch) Memory() model.Memory {
	entries, state := w.Entries()

	return model.Memory{Entries: entries, Stream: state.Stream, Kept: state.Kept}
}

// Run watches until the context ends; the error is that the connection was closed
// for good. wake is called with the keys that changed, and without any when
// everything is known for the first time, and when only the errors in Sync
// changed. It is called from Run's goroutine and must not block.
func (w *Watch) Run(ctx context.Context, wake func(keys []string)) error {
	p := newPending()
	subs, err := w.subscribe(p)
	defer func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}()
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.o.Node, err)
	}
	connected := w.store.Conn().StatusChanged(nats.CONNECTED)
	defer w.store.Conn().RemoveStatusListener(connected)
	l := newLoop(w, p, wake)
	for {
		timer := time.NewTimer(time.Until(l.next()))
		select {
		case <-ctx.Done():
		case <-p.came:
		case <-connected:
			l.reconnected()
		case <-timer.C:
			err = l.step(ctx)
		}
		timer.Stop()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("watch %s: %w", w.o.Node, err)
		}
	}
}

// subscribe asks for the headers of each change of the node's families.
func (w *Watch) subscribe(p *pending) ([]*nats.Subscription, error) {
	var subs []*nats.Subscription
	for i, family := range w.families {
		own := i == 0
		sub, err := w.store.Conn().Subscribe(w.store.Names().Changed(model.Key(family, ">")), func(m *nats.Msg) {
			key, ok := w.store.Names().ChangedKey(m.Subject)
			if !ok {
				return
			}
			due := time.Now()
			if !own {
				due = due.Add(w.spread())
			}
			p.add(key, announced(m.Header), due)
		})
		if err != nil {
			return subs, err
		}
		subs = append(subs, sub)
	}

	return subs, nil
}

// spread returns a moment within the jitter of groups.
func (w *Watch) spread() time.Duration {
	return time.Duration(w.o.Rand() * float64(w.o.GroupJitter))
}

// known returns the keys of a family that are in force.
func (w *Watch) known(family string) map[string]held {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := maps.Clone(w.entries)
	maps.DeleteFunc(known, func(_ string, h held) bool { return h.Family != family })

	return known
}

// update changes Sync.
func (w *Watch) update(change func(*model.Sync)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.sync)
}
