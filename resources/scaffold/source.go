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

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// partials is the name of directories with templates that yield no files.
	partials = "_partials"
	// maxTemplate is the maximum size of a template.
	maxTemplate = 16 << 20
)

// sourceFile is a template. The name and the text are bytes, because JSON would replace bytes that
// are not UTF-8.
type sourceFile struct {
	Name, Text []byte
	Mode       fs.FileMode
	// Partial reports that it yields no file.
	Partial bool
}

// readSource returns the templates of a scaffold, sorted by name, with partials at the end.
func (p Choria) readSource(ctx context.Context, env resource.Env, spec *Spec) ([]sourceFile, error) {
	if !spec.IsURL() {
		dir, err := sourceDir(env, spec)
		if err != nil {
			return nil, err
		}
		return read(ctx, env, dir, env.Scope.Author)
	}
	if source, have := p.cache.get(env.RunID, spec.Source).([]sourceFile); have {
		return source, nil
	}
	if limit := spec.Timeout.Std(); limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
		defer cancel()
		ctx = limited
	}
	source, err := fetch(ctx, env, spec.Source)
	size := 0
	for _, f := range source {
		size += len(f.Text)
	}
	if err == nil {
		p.cache.put(env.RunID, spec.Source, source, size)
	}

	return source, err
}

// fetch returns the source at a URL.
func fetch(ctx context.Context, env resource.Env, url string) ([]sourceFile, error) {
	if env.Scope.Origin == nil {
		return nil, errors.New("a source cannot be fetched here")
	}
	dir, cleanup, err := env.Scope.Origin.Tree(ctx, url)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("could not fetch the source: %w", err)
	}
	source, err := read(ctx, env, dir, paths.Author{Private: dir})
	if err != nil {
		// The user does not know the temporary directory.
		err = rewordedError{text: strings.ReplaceAll(err.Error(), dir+"/", ""), cause: err}
	}

	return source, errors.Join(err, cleanup())
}

func sourceDir(env resource.Env, spec *Spec) (dir string, err error) {
	switch {
	case filepath.IsAbs(spec.Source):
		dir = filepath.Clean(spec.Source)
	case env.Scope.Dir == "":
		return "", fmt.Errorf("source %q is relative, but this manifest has no directory: push it as a bundle with its files, or give an absolute path", spec.Source)
	default:
		dir = filepath.Join(env.Scope.Dir, spec.Source)
	}
	entry, err := env.Host.Follow(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("could not inspect the source: %w", err)
	case entry.Kind == files.Absent:
		return "", resource.NoSource(dir)
	case entry.Kind != files.Directory:
		return "", fmt.Errorf("the source %s is a %s, not a directory of templates", dir, entry.Kind)
	}
	// Otherwise purge would remove the templates, or the files would be templates. This check does
	// not need to be safe from a user who exchanges links in parallel.
	links := paths.Links{}
	_, from := links.Resolve(dir)
	_, to := links.Resolve(spec.Name)
	if strings.HasPrefix(from+"/", to+"/") || strings.HasPrefix(to+"/", from+"/") {
		return "", fmt.Errorf("the source %s and the target %s must not be within each other", from, to)
	}

	return dir, nil
}

// read reads the files below a directory. Links, special files and files that others than the
// author may change are errors.
func read(ctx context.Context, env resource.Env, dir string, author paths.Author) (source []sourceFile, err error) {
	var shared []sourceFile
	w := walker{left: maxWalked, visit: func(path string, _ fs.FileMode) error {
		name := strings.TrimPrefix(path, dir+"/")
		entry, err := env.Host.Look(path)
		switch {
		case err != nil:
			return fmt.Errorf("could not read a template: %w", err)
		case filepath.Base(name) == partials:
			return fmt.Errorf("%s in the source must be a directory", name)
		case entry.Kind != files.File:
			return fmt.Errorf("%s in the source is a link or special file: only files and directories are rendered", name)
		}
		text, err := entry.ReadTrusted(maxTemplate, author)
		if err != nil {
			return fmt.Errorf("could not read a template: %w", err)
		}
		f := sourceFile{Name: []byte(name), Text: text, Mode: fs.FileMode(entry.Mode).Perm(), Partial: strings.Contains("/"+name, "/"+partials+"/")}
		if f.Partial {
			shared = append(shared, f)
		} else {
			source = append(source, f)
		}
		return nil
	}}
	err = w.walk(ctx, dir)

	return append(source, shared...), err
}

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
