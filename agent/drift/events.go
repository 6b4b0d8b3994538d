package drift

import (
	"sync"
	"time"
)

// events are since when something may have happened to resources. Watches add to them from
// any goroutine.
type events struct {
	mu sync.Mutex
	at map[id]time.Time
}

// add notes that something may have happened to a resource since a time.
func (e *events) add(i id, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if before, known := e.at[i]; !known || at.Before(before) {
		e.at[i] = at
	}
}

// has reports whether something may have happened to a resource.
func (e *events) has(i id) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, known := e.at[i]

	return known
}

// take removes and returns all, nil for none.
func (e *events) take() (all map[id]time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.at) > 0 {
		all, e.at = e.at, map[id]time.Time{}
	}

	return all
}
