package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// partials is the directory of templates that others render; it yields no files.
	partials = "_partials"
	// maxTemplate is the size in bytes of the largest template.
	maxTemplate = 16 << 20
)

// tree is the content of a source.
type tree struct {
	// templates are those that yield a file, in order.
	templates []string
	// texts are those of all templates by name, of partials too; modes are theirs.
	texts map[string]string
	modes map[string]fs.FileMode
}

func (t *tree) size() (size int) {
	for _, text := range t.texts {
		size += len(text)
	}

	return size
}

// tree returns the templates of a scaffold.
func (p Choria) tree(ctx context.Context, env resource.Env, spec *Spec) (*tree, error) {
	if spec.IsURL() {
		if limit := spec.Timeout.Std(); limit > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
			defer cancel()
			ctx = limited
		}
		return p.cache.tree(env.RunID, spec.Source, func() (*tree, error) { return fetch(ctx, env, spec.Source) })
	}
	dir, err := source(env, spec)
	if err != nil {
		return nil, err
	}

	return read(ctx, env, dir, env.Scope.Author)
}

// fetch returns the source at a URL.
func fetch(ctx context.Context, env resource.Env, url string) (*tree, error) {
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
	t, err := read(ctx, env, dir, paths.Author{Private: dir})
	if err != nil {
		// The directory is gone when this is read.
		err = rewordedError{text: strings.ReplaceAll(err.Error(), dir+"/", ""), cause: err}
	}

	return t, errors.Join(err, cleanup())
}

// source returns the directory of the templates.
func source(env resource.Env, spec *Spec) (dir string, err error) {
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
	// The templates would be files to purge, or the files templates.
	// They are only compared: somebody else may exchange the links.
	links := paths.Links{}
	_, from := links.Resolve(dir)
	_, to := links.Resolve(spec.Name)
	if strings.HasPrefix(from+"/", to+"/") || strings.HasPrefix(to+"/", from+"/") {
		return "", fmt.Errorf("the source %s and the target %s must not be within each other", from, to)
	}

	return dir, nil
}

// read reads a source, which may hold only files and directories, and what its
// author may change.
func read(ctx context.Context, env resource.Env, dir string, author paths.Author) (*tree, error) {
	t := &tree{texts: map[string]string{}, modes: map[string]fs.FileMode{}}
	err := walk(ctx, dir, func(path string, _ fs.FileMode) error {
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
		t.texts[name], t.modes[name] = string(text), fs.FileMode(entry.Mode).Perm()
		if !strings.Contains("/"+name, "/"+partials+"/") {
			t.templates = append(t.templates, name)
		}
		return nil
	})

	return t, err
}
