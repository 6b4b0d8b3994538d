package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
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

// Status renders the templates and compares the files with the target.
func (p Choria) Status(ctx context.Context, env resource.Env, spec *Spec) (*State, error) {
	t, err := p.observe(ctx, env, spec, false)
	if err != nil {
		return nil, err
	}
	if len(t.due) > 0 && !env.Scope.ReadOnly() {
		size := 0
		for _, f := range t.files {
			size += len(f.content)
		}
		p.cache.put(env.RunID, spec, t.files, size)
	}

	return t.state, nil
}

// observe renders the templates and compares the files with the target. With reuse it takes the files of
// the last observation, if there are any.
func (p Choria) observe(ctx context.Context, env resource.Env, spec *Spec, reuse bool) (*target, error) {
	entry, err := env.Host.Look(spec.Name)
	if err != nil {
		return nil, err
	}
	t := &target{env: env, spec: spec, state: &State{}, there: map[string]fs.FileMode{}}
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

// Scaffold validates all files, writes the files that differ, runs their post commands, and with purge
// removes files without a template.
func (p Choria) Scaffold(ctx context.Context, env resource.Env, spec *Spec) error {
	t, err := p.observe(ctx, env, spec, true)
	if err == nil {
		err = t.state.Obstacle
	}
	if err == nil && spec.Validator != "" {
		err = t.validate(ctx)
	}
	if err == nil {
		_, err = env.Host.EnsureDirectory(spec.Name)
	}
	if err == nil {
		err = t.store(ctx)
	}
	if err == nil && spec.Purge {
		// Post commands may have mounted something.
		err = t.checkMounts(t.state.Metadata.Purged, nil)
	}
	if err == nil && spec.Purge {
		for _, path := range t.state.Metadata.Purged {
			err = errors.Join(err, env.Host.Remove(path))
		}
	}

	return err
}

// Remove removes the changed and stable files of a state, then their empty directories, deepest first, and
// the target if it is empty. It continues after an error, and returns all errors.
func (Choria) Remove(ctx context.Context, env resource.Env, spec *Spec, state *State) error {
	paths := slices.Concat(state.Metadata.Changed, state.Metadata.Stable)
	if at := slices.IndexFunc(paths, func(path string) bool { return !filepath.IsAbs(path) }); at >= 0 {
		return fmt.Errorf("the path of a file to remove is not absolute: %q", paths[at])
	}
	var failed error
	var parents []string
	for _, path := range paths {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed, env.Host.Remove(path))
		for dir := filepath.Dir(path); strings.HasPrefix(dir, spec.Name+"/"); dir = filepath.Dir(dir) {
			parents = append(parents, dir)
		}
	}
	slices.Sort(parents)
	for _, dir := range slices.Backward(slices.Compact(parents)) {
		if err := env.Host.Remove(dir); err != nil && !errors.Is(err, files.ErrNotEmpty) {
			failed = errors.Join(failed, err)
		}
	}
	if err := env.Host.Remove(spec.Name); err != nil {
		env.Log.DebugContext(ctx, "target kept", "target", spec.Name, "reason", err)
	}

	return errors.Join(failed, env.Host.Forget(records, spec.Name))
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
