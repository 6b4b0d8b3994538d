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

// controls is what operators write about nodes, read by one consumer for all that are played: a
// watch of each would be as many subscriptions as those of its assignments.
type controls struct {
	// store returns that of one of their connections.
	store func() *kvstore.Store

	mu sync.Mutex
	// families are the entries by family and key.
	families map[string]map[string]model.Entry
	sync     model.Sync
}

func newControls(store func() *kvstore.Store) *controls {
	return &controls{store: store, families: map[string]map[string]model.Entry{}}
}

// lookAgain is how often a fleet is looked at that has no bucket for this.
const lookAgain = 30 * time.Second

// Run keeps it current until ctx ends, and calls changed with the families of what changed, empty
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
		c.note(func(s *model.Sync) { s.At, s.Err = time.Now(), nil }) // there is nothing
		changed("")
		if kvstore.Pause(ctx, lookAgain) != nil {
			return nil
		}
	}
}

// follow is Run until there is an error.
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

// take takes over a revision; one without a key is none.
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

// Entries returns the keys of some families as they are known now.
func (c *controls) Entries(families []string) (map[string]model.Entry, model.Sync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]model.Entry{}
	for _, family := range families {
		maps.Copy(out, c.families[family])
	}

	return out, c.sync
}
