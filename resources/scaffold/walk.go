package scaffold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// The limit of one walk: the bytes of all paths, plus entryCost for each path. The owner of a target
// can create any number of files at no cost.
const (
	maxWalked = 256 << 20
	entryCost = 256
)

// walker walks a directory tree.
type walker struct {
	visit func(path string, kind fs.FileMode) error
	// left is the unused part of the limit.
	left int
	// mayVanish skips directories that another process removes during the walk.
	mayVanish bool
}

// walk visits everything below a directory except directories, sorted by path. It stays in this
// directory even if a user exchanges the path during the walk.
func (w *walker) walk(ctx context.Context, dir string) error {
	opened, err := paths.OpenDir(dir)
	if err == nil {
		defer opened.Close()
		err = w.below(ctx, opened.Root, dir)
	}
	switch {
	case w.mayVanish && errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && w.left < 0:
		return fmt.Errorf("%s has too many files for a scaffold: remove some, or name another directory", dir)
	default:
		return err
	}
}

// below walks below the directory that open opens.
func (w *walker) below(ctx context.Context, open func() (*os.Root, error), path string) error {
	if len(path) >= unix.PathMax {
		return fmt.Errorf("%s…: directories are nested deeper than a path can be: remove them", path[:100])
	}
	root, err := open()
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(w.left/entryCost + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = cmp.Or(err, dir.Close(), context.Cause(ctx)); err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	w.left -= len(entries) * entryCost
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		if w.left -= len(name); w.left < 0 {
			return nil
		}
		if entry.IsDir() {
			err = w.below(ctx, func() (*os.Root, error) { return root.OpenRoot(entry.Name()) }, name)
		} else {
			err = w.visit(name, entry.Type())
		}
		if err != nil && !(w.mayVanish && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}

	return nil
}
