package resource

import (
	"path/filepath"

	"github.com/musterfleet/muster/resources/host/watch"
)

// WatchPaths returns the points of paths. One that is empty or relative, such as that of
// a file in a bundle, has none.
func WatchPaths(paths ...string) []watch.Point { return watchAll(watch.Path, paths) }

// WatchTrees returns the points of directories with all that is below them, as
// WatchPaths does.
func WatchTrees(paths ...string) []watch.Point { return watchAll(watch.Tree, paths) }

func watchAll(kind watch.Kind, paths []string) []watch.Point {
	var out []watch.Point
	for _, path := range paths {
		if filepath.IsAbs(path) {
			out = append(out, watch.Point{Kind: kind, Name: filepath.Clean(path)})
		}
	}

	return out
}
