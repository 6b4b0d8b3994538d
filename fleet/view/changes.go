package view

import (
	"sync"
	"sync/atomic"
)

// changes counts and signals changes for readers.
type changes struct {
	// count counts changes, generation counts signals.
	count, generation atomic.Uint64

	mu sync.Mutex
	// signalled is the number of changes at the last signal.
	signalled uint64
	waiting   map[chan struct{}]bool
}

func newChanges() *changes { return &changes{waiting: map[chan struct{}]bool{}} }

// note counts a change.
func (c *changes) note() { c.count.Add(1) }

// signal wakes waiting readers if there were changes.
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
		default: // the previous signal is still pending
		}
	}
}

// Changes returns a channel that receives after changes, at most a few times a second, until cancel. A slow
// reader only receives later.
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
