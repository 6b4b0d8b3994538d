package fleetcmd

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// controls holds the control documents, read by one consumer for all simulated nodes: a watch per node would
// double the subscriptions.
type controls struct {
	// store returns the store of one connection.
	store func() *kvstore.Store

	mu sync.Mutex
	// families holds the entries by family and key.
	families map[string]map[string]model.Entry
	sync     model.Sync
}

func newControls(store func() *kvstore.Store) *controls {
	return &controls{store: store, families: map[string]map[string]model.Entry{}}
}

// provisionPoll is the interval between checks whether a fleet without the bucket has one now.
const provisionPoll = 30 * time.Second

// Run follows the bucket until ctx ends. It calls changed with each changed family, or with an empty string
// for all.
func (c *controls) Run(ctx context.Context, changed func(family string)) error {
	for {
		err := c.follow(ctx, changed)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, kvstore.ErrNotProvisioned) {
			c.note(func(s *model.Sync) { s.Err = err })
			changed("")
			return err
		}
		c.note(func(s *model.Sync) { s.At, s.Err = time.Now(), nil }) // the bucket does not exist
		changed("")
		if kvstore.Pause(ctx, provisionPoll) != nil {
			return nil
		}
	}
}

// follow follows the bucket until an error.
func (c *controls) follow(ctx context.Context, changed func(family string)) error {
	known := false
	for f, err := range kvstore.NewControl(c.store()).Follow(ctx) {
		if err != nil {
			return err
		}
		c.take(f.Entry)
		switch {
		case known:
			changed(f.Family)
		case f.Complete:
			known = true
			c.note(func(s *model.Sync) { s.At, s.Err = time.Now(), nil })
			changed("")
		}
	}

	return ctx.Err()
}

func (c *controls) note(change func(*model.Sync)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.sync)
}

// take applies an entry. It ignores an entry without a key.
func (c *controls) take(e model.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := c.families[e.Family]
	switch {
	case e.Key == "":
	case e.Deleted:
		delete(keys, e.Key)
	case keys == nil:
		c.families[e.Family] = map[string]model.Entry{e.Key: e}
	default:
		keys[e.Key] = e
	}
}

// Entries returns the current entries of some families.
func (c *controls) Entries(families []string) (map[string]model.Entry, model.Sync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]model.Entry{}
	for _, family := range families {
		maps.Copy(out, c.families[family])
	}

	return out, c.sync
}
