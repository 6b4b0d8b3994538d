package scaffold

import (
	"context"
	"fmt"
	"io/fs"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// Choria renders in a child process, and stores the files through the host. The zero value caches
// nothing between calls; NewChoria returns a provider with a cache.
type Choria struct{ cache *cache }

// NewChoria returns the provider.
func NewChoria() Choria { return Choria{cache: &cache{}} }

// Name returns choria.
func (Choria) Name() string { return "choria" }

// IsManageable accepts every scaffold.
func (Choria) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// observe renders the templates and compares the files with the target. With reuse it takes the files of
// the last observation, if there are any.
func (p Choria) observe(ctx context.Context, env resource.Env, spec *Spec, reuse bool) (*target, error) {
	entry, err := env.Host.Look(spec.Name)
	if err != nil {
		return nil, err
	}
	t := &target{env: env, spec: spec, state: &State{Attributes: map[string][]string{}}, there: map[string]fs.FileMode{}}
	t.state.Metadata = &Metadata{Name: spec.Name, Provider: p.Name(), TargetExists: entry.Kind == files.Directory, Engine: spec.Engine}
	if t.state.Ensure = model.EnsureAbsent; t.exists() {
		t.state.Ensure = model.EnsurePresent
	}
	switch {
	case spec.Source == "", spec.Ensure == model.EnsureAbsent && !t.exists():
		// Without a source it is a question about the target only.
		return t, nil
	case entry.Kind == files.Link:
		t.state.Obstacle = fmt.Errorf("%s %w, name the directory itself", spec.Name, files.ErrLink)
	case !t.exists() && entry.Kind != files.Absent:
		t.state.Obstacle = fmt.Errorf("%s: path exists as a %s, not as a directory", spec.Name, entry.Kind)
	case !t.exists():
		t.state.Obstacle = resource.Obstacle(env.Host, spec.Name, true)
	}
	if t.past, err = recall(env.Host, spec.Name); err != nil {
		return nil, err
	}
	if rendered, have := p.cache.get(env.RunID, spec).([]file); have && reuse {
		t.files = rendered
	} else if t.files, err = p.render(ctx, env, spec); err != nil {
		return nil, err
	}

	return t, t.compare(ctx)
}

// maxCached limits the size of all values in the cache.
const maxCached = 16 << 20

// cache holds values during one run: the fetched sources, and the files that an observation rendered
// for the change that follows. A nil cache holds nothing.
type cache struct {
	mu     sync.Mutex
	run    string
	size   int
	values map[any]any
}

// get returns a value of a run, nil for none.
func (c *cache) get(run string, key any) any {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != run {
		return nil
	}

	return c.values[key]
}

// put adds a value, unless the cache is full. The first value of a run removes the values of the
// run before.
func (c *cache) put(run string, key, value any, size int) {
	if c == nil || run == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != run {
		c.run, c.size, c.values = run, 0, map[any]any{}
	}
	delete(c.values, key)
	if c.size+size <= maxCached {
		c.size += size
		c.values[key] = value
	}
}
