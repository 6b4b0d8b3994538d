package choria

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// tree reads the templates of a scaffold.
func (p Provider) tree(ctx context.Context, env resource.Env, spec *scaffold.Spec) (*tree, error) {
	if spec.IsURL() {
		if limit := spec.Timeout.Std(); limit > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than %s", limit))
			defer cancel()
			ctx = limited
		}
		return p.fetched.tree(ctx, env, spec.Source)
	}
	dir, err := source(env, spec)
	if err != nil {
		return nil, err
	}

	return read(ctx, env, dir)
}

// source gives the directory of templates.
func source(env resource.Env, spec *scaffold.Spec) (dir string, err error) {
	switch {
	case filepath.IsAbs(spec.Source):
		dir = filepath.Clean(spec.Source)
	case env.Scope.Dir == "":
		return "", fmt.Errorf("source %q is relative, and this manifest has no directory to take it from: push it as a bundle, which brings its files along, or give an absolute path", spec.Source)
	default:
		dir = filepath.Join(env.Scope.Dir, spec.Source)
	}
	entry, err := env.Host.Follow(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("could not look at the source: %w", err)
	case entry.Kind == files.Absent:
		return "", resource.Missing{Need: resource.PathNeed(dir), Err: fmt.Errorf("the source %s does not exist: %w", dir, fs.ErrNotExist)}
	case entry.Kind != files.Directory:
		return "", fmt.Errorf("the source %s is a %s, not a directory of templates", dir, entry.Kind)
	}
	// What follows does not follow links, not even this one.
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = checkApart(real, spec.Name)
	}

	return real, err
}

// checkApart refuses a target and a source of which one holds the other: the
// templates would be files to purge, or what they give templates.
func checkApart(source, target string) error {
	if real, err := filepath.EvalSymlinks(target); err == nil {
		target = real
	}
	if strings.HasPrefix(source+"/", target+"/") || strings.HasPrefix(target+"/", source+"/") {
		return fmt.Errorf("the source %s and the target %s must not be within each other", source, target)
	}

	return nil
}

// tree is what a source holds.
type tree struct {
	templates []oneTemplate
	// texts are those of all by their names, of partials too.
	texts map[string]string
}

// oneTemplate is one template.
type oneTemplate struct {
	name string
	mode fs.FileMode
}

// maxTemplate is the largest template, in bytes.
const maxTemplate = 16 << 20

// read reads a source. Anything but files and directories is refused.
func read(ctx context.Context, env resource.Env, dir string) (*tree, error) {
	t := &tree{texts: map[string]string{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, context.Cause(ctx)); err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		partial := strings.Contains("/"+name+"/", "/"+partials+"/")
		switch {
		case d.IsDir():
			return nil
		case d.Name() == partials:
			return fmt.Errorf("%s in the source must be a directory", name)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s in the source is a link or special file: only files and directories are rendered", name)
		}
		text, err := env.Host.Read(path, maxTemplate)
		if err != nil {
			return fmt.Errorf("could not read a template: %w", err)
		}
		t.texts[name] = string(text)
		if partial {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		t.templates = append(t.templates, oneTemplate{name: name, mode: info.Mode().Perm()})
		return nil
	})

	return t, err
}
