package resource

import (
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/watch"
)

// WatchPaths returns the points of paths. It ignores empty paths and URLs. Relative paths are
// relative to the manifest: PointsBeside completes them.
func WatchPaths(paths ...string) []watch.Point { return watchAll(watch.Path, paths) }

// WatchTrees returns the points of directories with everything below them, as WatchPaths does.
func WatchTrees(paths ...string) []watch.Point { return watchAll(watch.Tree, paths) }

// PointsBeside completes relative paths of points with the directory of the manifest. Without a
// directory it drops them.
func PointsBeside(points []watch.Point, dir string) []watch.Point {
	var out []watch.Point
	for _, p := range points {
		if p.Kind != watch.Unit && !filepath.IsAbs(p.Name) {
			if dir == "" {
				continue
			}
			p.Name = filepath.Join(dir, p.Name)
		}
		out = append(out, p)
	}

	return out
}

func watchAll(kind watch.Kind, paths []string) []watch.Point {
	var out []watch.Point
	for _, path := range paths {
		if path != "" && !strings.Contains(path, "://") {
			out = append(out, watch.Point{Kind: kind, Name: filepath.Clean(path)})
		}
	}

	return out
}
