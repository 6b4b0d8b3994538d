package requests

import (
	"context"
	"slices"
	"sync"
)

// queue holds the waiting requests, oldest first, and cancels the execution of the others.
type queue struct {
	// wake is called when a request is ready. It must not block.
	wake func()

	mu      sync.Mutex
	waiting []*request
}

// add queues a request.
func (w *queue) add(q *request) {
	w.mu.Lock()
	w.waiting = append(w.waiting, q)
	w.mu.Unlock()
	w.wake()
}

// next removes and returns the oldest waiting run request or ensure request, nil if none waiting.
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

// stop cancels a request: it starts no further change. A cancel with Kill also aborts the current
// change.
func (w *queue) stop(q *request, why cancelled) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(waiting *request) bool { return waiting == q })
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

// executing returns the contexts of an execution; a cancel of the request ends them. end releases
// them.
func (w *queue) executing(ctx, killCtx context.Context, q *request) (soft, killed context.Context, end func()) {
	soft, stop := context.WithCancelCause(ctx)
	killed, kill := context.WithCancelCause(killCtx)
	w.mu.Lock()
	q.stop, q.kill = stop, kill
	why := q.cancelled
	w.mu.Unlock()
	if why != nil {
		stop(why)
	}

	return soft, killed, func() {
		w.mu.Lock()
		q.stop, q.kill = nil, nil
		w.mu.Unlock()
		stop(nil)
		kill(nil)
	}
}

// whyCancelled returns why a request was cancelled, nil if it was not.
func (w *queue) whyCancelled(q *request) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	return q.cancelled
}
