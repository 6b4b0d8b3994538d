package view

import (
	"sync"
	"sync/atomic"
)

// changes are those that readers are told of.
type changes struct {
	// count counts what changed, generation the signals.
	count, generation atomic.Uint64

	mu sync.Mutex
	// signalled is how many changes readers know of.
	signalled uint64
	waiting   map[chan struct{}]bool
}

func newChanges() *changes { return &changes{waiting: map[chan struct{}]bool{}} }

// note counts a change.
func (c *changes) note() { c.count.Add(1) }

// signal wakes those who wait for changes, where there were some.
func (c *changes) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.count.Load()
	if count == c.signalled {
		return
	}
	c.signalled = count
	c.generation.Add(1)
	for w := range c.waiting {
		select {
		case w <- struct{}{}:
		default: // it has not received the one before
		}
	}
}

// Changes returns a channel that receives when something may have changed, at most a few times a
// second, until cancel. Who does not receive misses nothing but the time of it.
func (c *changes) Changes() (changed <-chan struct{}, cancel func()) {
	w := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[w] = true

	return w, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, w)
	}
}
