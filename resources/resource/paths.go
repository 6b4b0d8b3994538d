package resource

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// CheckPath reports a path that is not absolute and clean. what names the path in the problem, such as
// "file path".
func CheckPath(out *model.Problems, property, what, path string) {
	if !filepath.IsAbs(path) {
		out.Property(property, "begin it with /, for example /etc/motd", "%s must be absolute: %q", what, path)
	}
	if clean := filepath.Clean(path); clean != path {
		out.Property(property, "write it as "+clean, "%s must be clean, without . or .. or a / too many: %q", what, path)
	}
	switch {
	case strings.ContainsRune(path, 0):
		out.Property(property, "", "%s must not contain a NUL byte", what)
	case strings.ContainsFunc(path, unicode.IsControl):
		out.Property(property, "", "%s must not contain control characters: %q", what, path)
	}
}

// MayWrite returns why muster cannot change entries of a directory, as a PrerequisiteError: the resource that
// manages the directory may allow it.
func MayWrite(h *host.Host, dir string) error {
	err := h.MayWrite(dir)
	if err == nil || paths.IsAbsent(err) {
		return nil
	}

	return PrerequisiteError{Needs: []string{PathNeed(dir)}, Err: err}
}

// MayReplace checks that muster may write to the directory of an existing path. It returns
// paths.ErrMounted if the path or anything below it is a mount point.
func MayReplace(h *host.Host, path string) error {
	if err := MayWrite(h, filepath.Dir(path)); err != nil {
		return err
	}

	return h.MayReplace(path)
}

// NoSource returns the error of a missing source: a PrerequisiteError that wraps fs.ErrNotExist.
func NoSource(path string) error {
	return PrerequisiteError{Needs: []string{PathNeed(path)}, Err: fmt.Errorf("the source %s: %w (correct `source`, or create it before this resource)", path, fs.ErrNotExist)}
}

// Obstacle returns why muster cannot create an absent path: an ancestor is not a directory or, unless
// muster also creates missing parents, the parent is missing, which is a PrerequisiteError. Both errors
// wrap files.ErrNoParent.
func Obstacle(h *host.Host, path string, createsParents bool) error {
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		if h.MayWrite(parent) == nil {
			return nil
		}
		entry, err := h.Follow(parent)
		switch {
		case err != nil:
			return err
		case entry.Kind == files.Directory:
			return MayWrite(h, parent)
		case entry.Kind != files.Absent:
			return fmt.Errorf("%s %w", parent, files.ErrNoParent)
		case !createsParents:
			return PrerequisiteError{Needs: []string{PathNeed(parent)}, Err: fmt.Errorf("%s %w, it does not exist", parent, files.ErrNoParent)}
		case parent == filepath.Dir(parent):
			return nil
		}
	}
}
