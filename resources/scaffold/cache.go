package scaffold

import "sync"

// maxCached limits the size of all values in the cache.
const maxCached = 16 << 20

// cache holds values during one run: the fetched source, and the files that an observation rendered
// for the change that follows. A nil cache holds nothing.
type cache struct {
	mu     sync.Mutex
	run    string
	size   int
	values map[any]cached
}

type cached struct {
	size  int
	value any
}

// take removes a value and returns it.
func (c *cache) take(run string, key any) (cached, bool) {
	if c == nil || run == "" {
		return cached{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v, have := c.values[key]
	if c.run != run || !have {
		return cached{}, false
	}
	delete(c.values, key)
	c.size -= v.size

	return v, true
}

// put adds a value, unless the cache is full. The first value of a run removes the values of the
// run before.
func (c *cache) put(run string, key any, size int, value any) {
	if c == nil || run == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != run {
		c.run, c.size, c.values = run, 0, map[any]cached{}
	}
	c.size -= c.values[key].size
	delete(c.values, key)
	if c.size+size <= maxCached {
		c.size += size
		c.values[key] = cached{size, value}
	}
}
