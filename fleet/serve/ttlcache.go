package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const readTimeout = 10 * time.Second

// errNotRead means that a read panicked.
var errNotRead = errors.New("reading ended without a value")

// ttlCache caches values by key for a fixed time. Concurrent callers of Get share one read and its value.
// Create it with newTTLCache.
type ttlCache[T any] struct {
	keep  time.Duration
	most  int
	reads singleflight.Group

	mu     sync.Mutex
	values map[string]*cachedValue[T]
}

type cachedValue[T any] struct {
	value T
	at    time.Time
}

// newTTLCache returns a cache that holds at most most values and drops each one keep after it was read.
func newTTLCache[T any](keep time.Duration, most int) *ttlCache[T] {
	return &ttlCache[T]{keep: keep, most: most, values: map[string]*cachedValue[T]{}}
}

// Get returns the cached value of a key, or reads it. The cache does not hold errors of read. If ctx ends, Get stops
// waiting, and the read continues for other callers, for at most readTimeout.
func (c *ttlCache[T]) Get(ctx context.Context, key string, read func(context.Context) (T, error)) (none T, err error) {
	result := c.reads.DoChan(key, func() (_ any, err error) {
		if known := c.known(key); known != nil {
			return known.value, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		defer func() {
			if why := recover(); why != nil {
				err = fmt.Errorf("%w: %v", errNotRead, why)
			}
		}()
		value, err := read(ctx)
		if err == nil {
			c.add(key, value)
		}

		return value, err
	})
	select {
	case r := <-result:
		value, _ := r.Val.(T)
		return value, r.Err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func (c *ttlCache[T]) known(key string) *cachedValue[T] {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.values[key]
}

// add adds a value. It replaces the oldest one of a full cache.
func (c *ttlCache[T]) add(key string, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.values) >= c.most {
		oldest := ""
		for k, v := range c.values {
			if o := c.values[oldest]; o == nil || v.at.Before(o.at) {
				oldest = k
			}
		}
		delete(c.values, oldest)
	}
	added := &cachedValue[T]{value, time.Now()}
	c.values[key] = added
	time.AfterFunc(c.keep, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.values[key] == added {
			delete(c.values, key)
		}
	})
}
