package scaffold

import (
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

const (
	// maxWalked bounds one walk: the bytes of all paths, and entryCost for each. Whoever
	// owns a target makes any number of files at no cost.
	maxWalked = 256 << 20
	entryCost = 256
)

// walk calls f for what is below a directory and no directory itself, in order.
// It stays in that very directory, whoever exchanges its path meanwhile.
func walk(ctx context.Context, dir string, f func(path string, kind fs.FileMode) error) error {
	return walkUpTo(ctx, maxWalked, dir, f)
}

// walkTarget is walk of a directory that somebody may be removing at that moment: what has
// gone is not there, which is no error.
func walkTarget(ctx context.Context, dir string, f func(path string, kind fs.FileMode) error) error {
	w := walker{visit: f, left: maxWalked, mayGo: true}
	if err := w.from(ctx, dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	return nil
}

// walkUpTo is walk with the bound of a test.
func walkUpTo(ctx context.Context, most int, dir string, f func(path string, kind fs.FileMode) error) error {
	w := walker{visit: f, left: most}

	return w.from(ctx, dir)
}

// from walks below a directory.
func (w *walker) from(ctx context.Context, dir string) error {
	opened, err := paths.OpenDir(dir)
	if err != nil {
		return err
	}
	defer opened.Close()
	root, err := opened.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := w.below(ctx, root, dir); err != nil {
		return err
	}
	if w.left < 0 {
		return fmt.Errorf("%s has too many files for a scaffold: remove some, or name another directory", dir)
	}

	return nil
}

// walker walks one tree.
type walker struct {
	visit func(path string, kind fs.FileMode) error
	// left is what is left of the bound; the walk ends below zero.
	left int
	// mayGo leaves out directories that are removed meanwhile.
	mayGo bool
}

// below walks below a directory that is open, and that path leads to.
func (w *walker) below(ctx context.Context, root *os.Root, path string) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(w.left/entryCost + 1)
	if errors.Is(err, io.EOF) || w.mayGo && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, d.Close(), context.Cause(ctx))
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	w.left -= len(entries) * entryCost
	for _, entry := range entries {
		name := filepath.Join(path, entry.Name())
		w.left -= len(name)
		switch {
		case err != nil || w.left < 0:
			return err
		case entry.IsDir():
			err = w.into(ctx, root, name)
		default:
			err = w.visit(name, entry.Type())
		}
	}

	return err
}

// into walks below a directory of one that is open.
func (w *walker) into(ctx context.Context, above *os.Root, path string) error {
	if len(path) >= unix.PathMax {
		return fmt.Errorf("%s…: directories are nested deeper than a path can be: remove them", path[:100])
	}
	root, err := above.OpenRoot(filepath.Base(path))
	if w.mayGo && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	return errors.Join(w.below(ctx, root, path), root.Close())
}
