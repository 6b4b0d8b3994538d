package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

// Status reads the path and resolves the properties on this machine. A missing
// account or source is a resource.PrerequisiteError.
func (Type) Status(ctx context.Context, env resource.Env, p Posix, spec *Spec) (*State, error) {
	// Without managed content muster never reads a file, except for a query of its state.
	var reads func(files.Entry) bool
	switch {
	case spec.Ensure == model.EnsureAbsent || spec.Ensure == EnsureDirectory:
	case !spec.describes():
		reads = func(files.Entry) bool { return true }
	case spec.writes(files.File):
		h, dir := env.Host, env.Scope.Dir
		reads = func(e files.Entry) bool { return e.Size <= maxOther || e.Size == wantedSize(h, dir, spec) }
	}
	state, err := p.Status(ctx, env, spec.Name, reads)
	if err != nil {
		return state, err
	}
	text := state.Text
	state.Text = nil // free the memory
	if state.Unknown != nil {
		return state, nil
	}
	if spec.Backup && state.Entry.Kind == files.File {
		state.want.copy, state.want.noCopy = copyOf(env.Host.StateDir(), state.Entry)
	}
	if spec.Ensure == model.EnsureAbsent {
		return state, checkRemoval(env, spec, state)
	}
	if !spec.describes() {
		return state, unreadable(state)
	}
	if state.want.attrs, err = attributes(ctx, env, spec); err != nil {
		return nil, err
	}
	if spec.givesRights() {
		if err := checkPrivate(spec.Name); err != nil {
			return nil, err
		}
	}
	if state.Entry.Kind == files.Absent {
		state.want.obstacle = resource.Obstacle(env.Host, spec.Name, spec.Ensure == EnsureDirectory || spec.Parents)
	}
	if spec.Ensure == EnsureDirectory || !spec.writes(state.Entry.Kind) {
		if e, want := state.Entry, state.want.attrs; e.Kind == files.File && (e.UID != want.UID || e.GID != want.GID) {
			state.want.carried = env.Host.Carried(spec.Name, want, true)
		}
		return state, nil
	}

	return state, resolveContent(ctx, env, spec, state, text)
}

// maxOther is the largest size in bytes of a file that is read for the digest of its change although its
// size shows that it differs. A file of any size costs its owner nothing; reading it takes hours.
const maxOther = 64 << 20

// wantedSize returns the size of the wanted content, or -1.
func wantedSize(h *host.Host, dir string, spec *Spec) int64 {
	source, err := sourcePath(dir, spec)
	if err == nil && source == "" {
		return int64(len(*spec.Content))
	}
	entry, err := lookAtSource(h, source, spec)
	if err != nil {
		return -1
	}

	return entry.Size
}

// attributes resolves owner, group and mode. An unknown account is a
// resource.PrerequisiteError that wraps host.ErrNoAccount.
func attributes(ctx context.Context, env resource.Env, spec *Spec) (files.Attrs, error) {
	uid, gid, err := resource.ResolveAccounts(ctx, env.Host, spec.Owner, spec.Group)
	if err != nil {
		return files.Attrs{}, err
	}
	mode, err := resource.ParseMode(spec.Mode)
	if spec.Ensure == EnsureDirectory {
		mode = searchable(mode)
	}

	attrs := files.Attrs{UID: uid, GID: gid, Mode: fs.FileMode(mode)}
	for _, p := range spec.specialProperties() {
		if p.value != nil {
			attrs.Manages |= p.bit
		}
		if isSet(p.value) {
			attrs.Special |= p.bit
		}
	}

	return attrs, err
}

// checkPrivate returns an error if users other than root and the running user may replace a file with setuid or
// setgid, or its source. Without the directory, the directory above it decides.
func checkPrivate(path string) error {
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		dir, err := paths.OpenDir(parent)
		if paths.IsAbsent(err) && parent != filepath.Dir(parent) {
			continue
		}
		if err != nil {
			return err
		}
		err = errors.Join(dir.CheckOwn(), dir.Close())
		if err != nil {
			err = fmt.Errorf("setuid and setgid: %w", err)
		}
		return err
	}
}

// checkRemoval checks whether the path can be removed, and whether a directory is
// empty.
func checkRemoval(env resource.Env, spec *Spec, state *State) error {
	if state.Entry.Kind != files.Absent {
		state.want.obstacle = resource.MayReplace(env.Host, spec.Name)
	}
	if state.Entry.Kind == files.Link {
		state.want.mask = files.IsMask(spec.Name)
	}
	if state.Entry.Kind != files.Directory || spec.Force {
		return nil
	}
	empty, err := files.IsEmpty(spec.Name)
	state.want.notEmpty = !empty

	return err
}

// resolveContent sets the wanted content and, if it differs, the texts of a diff. text is the content
// of the file, nil if it still has to be read.
func resolveContent(ctx context.Context, env resource.Env, spec *Spec, state *State, text *string) error {
	source, err := sourcePath(env.Scope.Dir, spec)
	if err != nil {
		return err
	}
	want := &state.want
	if !willBeReadable(state) {
		return unreadable(state)
	}
	found := state.digest()
	var from files.Entry
	if source == "" {
		want.digest, want.size = digestOf(*spec.Content, found), int64(len(*spec.Content))
	} else if from, err = resolveSource(ctx, env, source, spec, want); err != nil {
		return err
	}
	if state.Entry.Kind != files.Absent && (found != want.digest || len(attributeChanges(actionStore, spec, state, state.Entry, allBits)) > 0) {
		want.obstacle = resource.MayReplace(env.Host, spec.Name)
		want.carried = env.Host.Carried(spec.Name, want.attrs, false)
	}
	// Sensitive content is never read for a diff.
	if found == want.digest || spec.Sensitive {
		return nil
	}
	switch {
	case state.Entry.Kind != files.File || state.hidden():
	case text != nil:
		want.before = resource.SnippetOf(*text)
	default:
		want.before = resource.ReadSnippet(state.Entry)
	}
	if source == "" {
		want.after = resource.SnippetOf(*spec.Content)
	} else {
		want.after = resource.ReadSnippet(from)
	}

	return nil
}

// digestOf returns the hex SHA-256 of a content. It allocates nothing if the content has the
// digest found, as usual.
func digestOf(content, found string) string {
	var small [1 << 10]byte
	var text [2 * sha256.Size]byte
	sum := sha256.Sum256(append(small[:0], content...))
	hex.Encode(text[:], sum[:])
	if string(text[:]) == found {
		return found
	}

	return string(text[:])
}

func unreadable(state *State) error {
	if state.Unreadable == nil {
		return nil
	}

	return fmt.Errorf("could not read the file: %w", state.Unreadable)
}

// willBeReadable reports whether the content can be compared, or only a wrong mode prevents its owner from
// reading it, which a store corrects.
func willBeReadable(state *State) bool {
	const ownerReads = 0o400

	return state.Unreadable == nil || state.Entry.IsOwn() && state.Entry.Mode&ownerReads == 0 && state.want.attrs.Mode&ownerReads != 0
}

// resolveSource sets the wanted content, and returns the source file.
func resolveSource(ctx context.Context, env resource.Env, source string, spec *Spec, want *wanted) (files.Entry, error) {
	entry, err := lookAtSource(env.Host, source, spec)
	if err != nil {
		return entry, err
	}
	want.size = entry.Size
	if want.digest, err = env.Host.DigestEntry(ctx, entry); err != nil {
		return entry, fmt.Errorf("could not read the source: %w", err)
	}

	return entry, nil
}

// lookAtSource returns the entry of the source. A source that is too large is an error: a file of
// any size costs a user who may write to it nothing, and reading it takes hours.
func lookAtSource(h *host.Host, source string, spec *Spec) (files.Entry, error) {
	entry, err := h.Follow(source)
	switch {
	case err != nil:
		return entry, fmt.Errorf("could not inspect the source: %w", err)
	case entry.Kind == files.Absent:
		return entry, resource.NoSource(source)
	case entry.Kind != files.File:
		return entry, fmt.Errorf("the source %s is a %s: it %w", source, entry.Kind, files.ErrNotRegular)
	case spec.givesRights() && entry.OfOthers():
		return entry, fmt.Errorf("the source %s: others than root may write to it, so its copy gets no setuid or setgid: give it to root", source)
	case spec.MaxSize != 0 && entry.Size > int64(spec.MaxSize):
		return entry, fmt.Errorf("the source %s: %w: %s, and max_size is %s", source, files.ErrTooLarge, resource.FormatSize(entry.Size), spec.MaxSize)
	case spec.MaxSize == 0 && entry.OfOthers() && entry.Size > maxOfOthers:
		return entry, fmt.Errorf("the source %s: %w: %s, and others than root may write to it: set max_size if it is as large as it should be", source, files.ErrTooLarge, resource.FormatSize(entry.Size))
	case spec.givesRights():
		if err := checkPrivate(source); err != nil {
			return entry, fmt.Errorf("the source %s: %w", source, err)
		}
	}

	return entry, nil
}

// maxOfOthers is the maximum size of a source that other users can write, without max_size.
const maxOfOthers = 10 << 30

// sourcePath returns the absolute path of the source, empty for no source. dir is the directory of
// the manifest.
func sourcePath(dir string, spec *Spec) (string, error) {
	switch {
	case spec.Source == "" || filepath.IsAbs(spec.Source):
		return spec.Source, nil
	case dir == "":
		return "", fmt.Errorf("source %q is relative, but this manifest has no directory: push it as a bundle with its files, or give an absolute path", spec.Source)
	default:
		return filepath.Join(dir, spec.Source), nil
	}
}
