package drift

import (
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

// events holds the unhandled events of resources. Its methods are safe for concurrent use.
type events struct {
	mu sync.Mutex
	at map[id]event
}

// event is the time of the first event of a resource, and the names of all changed points.
type event struct {
	at     time.Time
	points []string
}

// isOnlyAt reports whether path is the only changed point.
func (e event) isOnlyAt(path string) bool {
	return !slices.ContainsFunc(e.points, func(name string) bool { return name != path })
}

// add merges an event of a resource with its earlier event.
func (e *events) add(i id, next event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, known := e.at[i]
	if !known {
		e.at[i] = next
		return
	}
	before.at = model.EarlierTime(before.at, next.at)
	for _, name := range next.points {
		if !slices.Contains(before.points, name) {
			before.points = append(before.points, name)
		}
	}
	e.at[i] = before
}

// has reports whether a resource has an event.
func (e *events) has(i id) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, known := e.at[i]

	return known
}

// take removes and returns all events.
func (e *events) take() (all map[id]event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.at) > 0 {
		all, e.at = e.at, map[id]event{}
	}

	return all
}
