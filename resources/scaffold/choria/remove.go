package choria

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// Remove removes the changed and stable files of a state, then the directories
// they were in that are empty, deepest first, and the target when it is empty
// too. It goes on after an error, and gives all of them.
func (Provider) Remove(ctx context.Context, env resource.Env, spec *scaffold.Spec, state *scaffold.State) error {
	paths := slices.Concat(state.Metadata.Changed, state.Metadata.Stable)
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("the path of a file to remove is not absolute: %q", path)
		}
	}
	var failed error
	parents := map[string]bool{}
	for _, path := range paths {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed, env.Host.Remove(path))
		for dir := filepath.Dir(path); strings.HasPrefix(dir, spec.Name+"/"); dir = filepath.Dir(dir) {
			parents[dir] = true
		}
	}
	deepest := slices.SortedFunc(maps.Keys(parents), func(a, b string) int {
		return strings.Count(b, "/") - strings.Count(a, "/")
	})
	for _, dir := range deepest {
		if err := env.Host.Remove(dir); err != nil && !errors.Is(err, files.ErrNotEmpty) {
			failed = errors.Join(failed, err)
		}
	}
	if err := env.Host.Remove(spec.Name); err != nil {
		env.Log.DebugContext(ctx, "the target stays", "target", spec.Name, "reason", err)
	}

	return errors.Join(failed, forget(env.Host, spec.Name))
}
