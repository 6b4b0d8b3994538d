package serve

import (
	"context"
	"errors"
	"sync"
	"time"
)

// readTimeout limits one read.
const readTimeout = 10 * time.Second

// errNotRead is returned to callers that waited for a read that panicked.
var errNotRead = errors.New("reading ended without a value")

// ttlCache caches values by key for a fixed time. Concurrent callers of Get share one read and its value.
// Create it with newTTLCache.
type ttlCache[T any] struct {
	keep time.Duration
	most int

	mu     sync.Mutex
	values map[string]*cachedValue[T]
}

// cachedValue holds the result of a read. Its fields are valid after done is closed.
type cachedValue[T any] struct {
	done chan struct{}
	was  T
	err  error
	// at is the time at which the read started.
	at time.Time
}

// newTTLCache returns a cache that holds at most most values and drops each one keep after it was read.
func newTTLCache[T any](keep time.Duration, most int) *ttlCache[T] {
	return &ttlCache[T]{keep: keep, most: most, values: map[string]*cachedValue[T]{}}
}

// Get returns the cached value of a key, or reads it. Callers that arrive during a read wait for its result. The
// cache drops errors of read immediately. If ctx ends, Get stops waiting for another caller's read; a read that Get
// started continues for the other callers, for at most readTimeout. If read panics, Get panics and the waiting
// callers receive errNotRead.
func (v *ttlCache[T]) Get(ctx context.Context, key string, read func(context.Context) (T, error)) (none T, err error) {
	is, first := v.value(key)
	if first {
		v.read(ctx, key, is, read)
	}
	select {
	case <-is.done:
		return is.was, is.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// value returns the entry of a key, and whether it is new. The caller reads a new entry. A new entry replaces
// the oldest one of a full cache.
func (v *ttlCache[T]) value(key string) (is *cachedValue[T], first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if is := v.values[key]; is != nil {
		return is, false
	}
	for len(v.values) >= v.most {
		oldest := ""
		for k, is := range v.values {
			if o := v.values[oldest]; o == nil || is.at.Before(o.at) {
				oldest = k
			}
		}
		delete(v.values, oldest)
	}
	is = &cachedValue[T]{done: make(chan struct{}), at: time.Now()}
	v.values[key] = is

	return is, true
}

// read reads the value of a key. It ignores the cancellation of ctx, because other callers may wait for the value.
func (v *ttlCache[T]) read(ctx context.Context, key string, is *cachedValue[T], read func(context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	is.err = errNotRead
	defer func() {
		if is.err != nil {
			v.forget(key, is)
		}
		close(is.done)
	}()
	if is.was, is.err = read(ctx); is.err == nil {
		time.AfterFunc(v.keep, func() { v.forget(key, is) })
	}
}

// forget removes a value from the cache, unless a newer one has replaced it.
func (v *ttlCache[T]) forget(key string, is *cachedValue[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.values[key] == is {
		delete(v.values, key)
	}
}
