package scaffold

import (
	"sync"

	"github.com/musterfleet/muster/resources/resource"
)

// maxKept is the size, in bytes, of the largest source that is kept for a run,
// and of all files that are kept together.
const maxKept = 16 << 20

// cache keeps what one run has fetched and rendered: all observations of a run
// see the same source, and what one rendered is stored without another process.
// A nil cache keeps nothing.
type cache struct {
	mu    sync.Mutex
	run   string
	trees map[string]*tree
	files map[*Spec][]file
}

// begin locks the cache for a run, and reports whether there is one.
func (c *cache) begin(run string) bool {
	if c == nil || run == "" {
		return false
	}
	c.mu.Lock()
	if c.run != run {
		c.run, c.trees, c.files = run, map[string]*tree{}, map[*Spec][]file{}
	}

	return true
}

// tree returns the source at a URL, which fetch fetches once a run.
func (c *cache) tree(run, url string, fetch func() (*tree, error)) (*tree, error) {
	if !c.begin(run) {
		return fetch()
	}
	defer c.mu.Unlock()
	if t, have := c.trees[url]; have {
		return t, nil
	}
	t, err := fetch()
	if err == nil && t.size() <= maxKept {
		c.trees[url] = t
	}

	return t, err
}

// keep keeps the files of an observation for the change that follows it.
func (c *cache) keep(env resource.Env, spec *Spec, files []file) {
	if env.Scope.Unchanging() || !c.begin(env.RunID) {
		return
	}
	defer c.mu.Unlock()
	c.files[spec] = files
	size := 0
	for _, kept := range c.files {
		for _, f := range kept {
			size += len(f.content)
		}
	}
	if size > maxKept {
		delete(c.files, spec)
	}
}

// take returns the files that the last observation kept, once.
func (c *cache) take(env resource.Env, spec *Spec) (files []file, have bool) {
	if !c.begin(env.RunID) {
		return nil, false
	}
	defer c.mu.Unlock()
	files, have = c.files[spec]
	delete(c.files, spec)

	return files, have
}
