package watch

import (
	"sync"
	"time"
)

// pending are the keys that the server announced and that were not read yet.
type pending struct {
	// came has a token when a key was added since it was last taken.
	came chan struct{}

	mu   sync.Mutex
	keys map[string]announcement
}

// announcement is one key to read, when, and the sequence it must have at least.
type announcement struct {
	sequence uint64
	due      time.Time
}

func newPending() *pending {
	return &pending{came: make(chan struct{}, 1), keys: map[string]announcement{}}
}

// add notes a key; a key that waits already keeps its moment, so that a key
// that changes all the time is read all the same.
func (p *pending) add(key string, sequence uint64, due time.Time) {
	p.mu.Lock()
	if before, ok := p.keys[key]; ok {
		due = before.due
	}
	p.keys[key] = announcement{sequence: sequence, due: due}
	p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default:
	}
}

// next returns the earliest moment a key is due; ok is false when none waits.
func (p *pending) next() (at time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.keys {
		if !ok || a.due.Before(at) {
			at, ok = a.due, true
		}
	}

	return at, ok
}

// take removes and returns the keys that are due.
func (p *pending) take(now time.Time) map[string]uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := map[string]uint64{}
	for key, a := range p.keys {
		if !a.due.After(now) {
			due[key] = a.sequence
			delete(p.keys, key)
		}
	}

	return due
}
