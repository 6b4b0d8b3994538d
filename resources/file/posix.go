package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

// Posix manages files with system calls.
type Posix struct{}

// Name is posix.
func (Posix) Name() string { return "posix" }

// IsManageable accepts every path.
func (Posix) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	return true, 1, nil
}

// Status reads path. For a path that is unsafe or without permission to inspect it reports absent, as
// specified, with a warning and with Unknown, so that the path is not written or removed. After other errors
// ensure stays empty.
func (p Posix) Status(ctx context.Context, env resource.Env, path string, reads func(files.Entry) bool) (*State, error) {
	state := &State{}
	entry, err := env.Host.Look(path)
	if err != nil {
		env.Log.WarnContext(ctx, "could not inspect path", "path", path, "error", err)
		state.Unknown = err
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, paths.ErrUnsafe) {
			state.Ensure = model.EnsureAbsent
		}
		return state, nil
	}
	state.Entry = entry
	switch entry.Kind {
	case files.Absent:
		state.Ensure = model.EnsureAbsent
		return state, nil
	case files.Directory:
		state.Ensure = EnsureDirectory
	default:
		state.Ensure = model.EnsurePresent
	}
	state.Metadata = &Metadata{Name: path, Provider: p.Name()}
	switch {
	case entry.Kind == files.Link:
		entry = follow(env, state)
	case entry.Kind == files.Other:
		state.Metadata.Extended = map[string]any{"special": true}
	case entry.Kind == files.File && reads != nil && reads(entry):
		digest, text, err := env.Host.Compare(ctx, entry)
		if state.Unreadable = err; err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("could not read the file: %w", err)
		}
		if entry.Foreign() != nil {
			state.Unshown = digest
		} else {
			state.Metadata.Checksum, state.Text = digest, text
		}
	}
	describe(ctx, env, state.Metadata, entry)

	return state, nil
}

// follow returns the entry that describes a link: the directory at its end, or the link itself, even if
// it cannot be followed.
func follow(env resource.Env, state *State) files.Entry {
	state.Metadata.Extended = map[string]any{"link": true}
	target, err := env.Host.Follow(state.Entry.Path)
	state.Target = &target
	if err != nil || target.Kind != files.Directory {
		return state.Entry
	}
	state.Ensure = EnsureDirectory

	return target
}

func describe(ctx context.Context, env resource.Env, m *Metadata, entry files.Entry) {
	m.Owner, m.Group = env.Host.UserName(ctx, entry.UID), env.Host.GroupName(ctx, entry.GID)
	m.Mode = resource.FormatMode(entry.Mode)
	m.Size, m.MTime = entry.Size, entry.ModTime.UTC()
}

// store atomically creates or replaces the file with its content. It replaces a link and never follows it. With
// validate it does not store content that the command of validate rejects.
func store(ctx context.Context, env resource.Env, spec *Spec, a files.Attrs, validate bool) error {
	var content io.Reader = strings.NewReader("")
	source, err := sourcePath(env.Scope.Dir, spec)
	switch {
	case err != nil:
		return err
	case spec.Content != nil:
		content = strings.NewReader(*spec.Content)
	case source != "":
		entry, err := lookAtSource(env.Host, source, spec)
		if err != nil {
			return err
		}
		f, err := files.Open(source)
		if err != nil {
			return fmt.Errorf("could not open the source: %w", err)
		}
		defer f.Close()
		content = files.Sized{File: f, Size: entry.Size}
	}
	o := files.WriteOptions{DropCapabilities: spec.DropCapabilities}
	if validate && spec.Validator != "" {
		o.Check = func(temporary string) error {
			return resource.RunValidator(ctx, env, spec.Validator, temporary, spec.Name, filepath.Dir(temporary))
		}
	}

	write := func() error { return env.Host.WriteWith(ctx, spec.Name, content, a, o) }
	if spec.Parents {
		return env.Host.WithParents(spec.Name, write)
	}

	return write()
}

// remove removes the path, not the target of a link. Without force a directory with entries is
// files.ErrNotEmpty.
func remove(ctx context.Context, env resource.Env, spec *Spec) error {
	if spec.Force {
		return env.Host.RemoveAll(ctx, spec.Name)
	}
	err := env.Host.Remove(spec.Name)
	if errors.Is(err, files.ErrNotEmpty) {
		return fmt.Errorf("%w, force: true is required to remove it with its content", err)
	}

	return err
}
