package requests

import (
	"context"
	"slices"
	"sync"
)

// queue has the requests that wait to be executed, the oldest first, and what ends the execution of
// those that do not wait any more.
type queue struct {
	// wake is called when a request waits. It must not block.
	wake func()

	mu      sync.Mutex
	waiting []*request
}

// add has a request wait.
func (w *queue) add(q *request) {
	w.mu.Lock()
	w.waiting = append(w.waiting, q)
	w.mu.Unlock()
	w.wake()
}

// next removes and returns the oldest request that waits, a run request or one of a resource;
// nil when none does.
func (w *queue) next(run bool) *request {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.waiting, func(q *request) bool { return q.Run == run })
	if i < 0 {
		return nil
	}
	q := w.waiting[i]
	w.waiting = slices.Delete(w.waiting, i, i+1)

	return q
}

// stop has a request begin nothing more, and with a kill its change in hand broken off.
func (w *queue) stop(q *request, why cancelled) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(waits *request) bool { return waits == q })
	if q.cancelled == nil {
		q.cancelled = why
	}
	if q.stop != nil {
		q.stop(why)
	}
	if q.kill != nil && why.Kill {
		q.kill(why)
	}
}

// executing returns the contexts in which a request is executed: what cancels it ends them.
func (w *queue) executing(ctx, hard context.Context, q *request) (soft, broken context.Context, end func()) {
	soft, stop := context.WithCancelCause(ctx)
	broken, kill := context.WithCancelCause(hard)
	w.mu.Lock()
	q.stop, q.kill = stop, kill
	why := q.cancelled
	w.mu.Unlock()
	if why != nil {
		stop(why)
	}

	return soft, broken, func() {
		w.mu.Lock()
		q.stop, q.kill = nil, nil
		w.mu.Unlock()
		stop(nil)
		kill(nil)
	}
}

// whyCancelled returns why a request is not executed any more, nil where it is.
func (w *queue) whyCancelled(q *request) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	return q.cancelled
}
