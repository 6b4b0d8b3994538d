package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// MakeDirectory creates path and its missing parents, and sets the attributes of path, which keeps its
// special bits. The parents have mode 0755 and belong to the process; below a directory of another user they
// belong to that user. A file as a parent is ErrNoParent; a file at path is ErrNotDirectory; a link at path is ErrLink.
// After an error it removes the directories that it created.
func (d *Disk) MakeDirectory(path string, a Attrs) error {
	return d.inParent(path, func(parent *paths.Dir, name string) error {
		dir, made, err := makeIn(parent, name, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		if made {
			return nil
		}
		return setAttrs(parent, dir.Fd(), dir.Path(), a)
	})
}

// EnsureDirectory creates path and its missing parents like the parents of MakeDirectory, and does not change
// an existing directory. It reports whether users other than root and the running user may replace files in
// it.
func (d *Disk) EnsureDirectory(path string) (shared bool, err error) {
	err = d.inParent(path, func(parent *paths.Dir, name string) error {
		a := impliedAttrs(parent)
		// Only parents keep the group of a setgid directory.
		if a.GID == anyGroup {
			a.GID = OwnAttrs(0).GID
		}
		dir, _, err := makeIn(parent, name, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		shared = dir.CheckOwn() != nil
		return parent.Check(dir)
	})

	return shared, err
}

// WithParents creates the missing directories above path, as MakeDirectory does, and calls f. If f fails, it
// removes the new directories.
func (d *Disk) WithParents(path string, f func() error) error {
	return d.inParent(path, func(*paths.Dir, string) error { return f() })
}

// inParent calls f with the parent of path. It creates a missing parent and removes it if f fails.
func (d *Disk) inParent(path string, f func(parent *paths.Dir, name string) error) error {
	at, err := changing(path, d.paths.Parent)
	if !errors.Is(err, unix.ENOENT) {
		if err != nil {
			return err
		}
		defer at.Dir.Close()
		return f(at.Dir, at.Name)
	}

	return d.inParent(filepath.Dir(path), func(above *paths.Dir, base string) error {
		dir, made, err := makeIn(above, base, impliedAttrs(above))
		if err != nil {
			return err
		}
		defer dir.Close()
		err = above.Check(dir)
		if err == nil {
			err = f(dir, filepath.Base(path))
		}
		if err != nil && made {
			// A directory with other files stays.
			_ = unix.Unlinkat(above.Fd(), base, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// impliedAttrs returns the attributes of a new parent directory: it belongs to the owner of the directory
// above, if walks follow that owner's directories.
func impliedAttrs(above *paths.Dir) Attrs {
	a := OwnAttrs(0o755)
	a.GID = anyGroup
	var st unix.Stat_t
	if above.Party() >= 0 && above.Stat(".", &st) == nil {
		a.UID, a.GID = st.Uid, st.Gid
	}

	return a
}

// anyGroup keeps the group that the system gave to a new directory. It is not a valid group.
const anyGroup = ^uint32(0)

// makeIn creates one directory with attributes, or opens the existing one. Other users cannot enter it before
// it has its attributes. If setting them fails, it removes the directory.
func makeIn(parent *paths.Dir, name string, a Attrs) (dir *paths.Dir, made bool, err error) {
	full := filepath.Join(parent.Path(), name)
	switch err := paths.Retry(func() error { return unix.Mkdirat(parent.Fd(), name, 0o700) }); err {
	case nil:
		made = true
	case unix.EEXIST:
	default:
		return nil, false, &fs.PathError{Op: "mkdir", Path: full, Err: err}
	}
	dir, err = parent.Child(name)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, false, notDirectory(parent, name)
	}
	if err != nil {
		return nil, false, err
	}
	if !made {
		return dir, false, nil
	}
	if err := errors.Join(furnish(dir, a), parent.Sync()); err != nil {
		_ = unix.Unlinkat(parent.Fd(), name, unix.AT_REMOVEDIR)
		return nil, false, errors.Join(err, dir.Close())
	}

	return dir, true, nil
}

// furnish sets the attributes of a new directory. The directory must be empty; otherwise the owner of its
// parent has replaced it.
func furnish(dir *paths.Dir, a Attrs) error {
	empty, err := isEmpty(dir)
	if err == nil && !empty {
		err = fmt.Errorf("%s %w", dir.Path(), ErrReplaced)
	}
	if err != nil {
		return err
	}
	if err := DropLists(dir.Fd()); err != nil {
		return err
	}
	if err := setAttrs(nil, dir.Fd(), dir.Path(), a); err != nil {
		return err
	}

	return dir.Refresh()
}

// notDirectory returns the error for another kind of file at the path of a directory.
func notDirectory(parent *paths.Dir, name string) error {
	var st unix.Stat_t
	path := filepath.Join(parent.Path(), name)
	switch err := parent.Stat(name, &st); {
	case err != nil:
		return err
	case kindOf(&st) == Link:
		return fmt.Errorf("%s %w", path, ErrLink)
	default:
		return fmt.Errorf("%s %w", path, ErrNotDirectory)
	}
}

// Remove removes a file, link, special file or empty directory; a missing one
// is not an error. A directory with entries wraps ErrNotEmpty, the root
// directory ErrRefused.
func (d *Disk) Remove(path string) error {
	return d.remove(path, func(dir *paths.Dir, name string) error {
		switch err := paths.Unlink(dir.Fd(), name); err {
		case nil:
			return nil
		case unix.ENOTEMPTY, unix.EEXIST:
			return fmt.Errorf("%s: %w", path, ErrNotEmpty)
		default:
			return busy(dir, name, &fs.PathError{Op: "remove", Path: path, Err: err})
		}
	})
}

// RemoveAll removes path and everything below it without following links; a
// missing path is not an error. If path or anything below it is a mount point, RemoveAll
// removes nothing and returns paths.ErrMounted. Entries that cannot be removed stay, and the
// first error is returned. RemoveAll stops when ctx ends. The root directory is ErrRefused.
func (d *Disk) RemoveAll(ctx context.Context, path string) error {
	return d.remove(path, func(dir *paths.Dir, name string) error {
		if err := paths.RemoveTreeIn(ctx, dir, name); err != nil {
			return fmt.Errorf("could not remove %s: %w", path, err)
		}

		return nil
	})
}

// MayReplace returns paths.ErrMounted if path or anything below it is a mount point, so that
// path can be neither replaced nor removed.
func MayReplace(path string) error {
	at, err := changing(path, new(paths.Resolver).Parent)
	switch {
	case errors.Is(err, ErrNoParent):
		return nil
	case err != nil:
		return err
	}
	defer at.Dir.Close()

	return paths.RefuseMount(at.Dir.Fd(), at.Name)
}

// MountsBelow returns the mount points below the directory at path, without path itself.
func MountsBelow(path string) ([]paths.MountPoint, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	return paths.MountsBelow(dir.Fd(), ".")
}

// busy returns paths.ErrMounted if a mount caused the error of a system call, else the error.
func busy(dir *paths.Dir, name string, err error) error {
	if errors.Is(err, unix.EBUSY) {
		if mounted := paths.RefuseMount(dir.Fd(), name); mounted != nil {
			return mounted
		}
	}

	return err
}

// remove works like change, but a missing parent is no error.
func (d *Disk) remove(path string, f func(dir *paths.Dir, name string) error) error {
	if err := d.change(path, f); !errors.Is(err, ErrNoParent) {
		return err
	}

	return nil
}

// IsEmpty reports whether a directory has no entries. Another kind of file is
// an error.
func IsEmpty(path string) (bool, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return false, err
	}
	defer dir.Close()

	return isEmpty(dir)
}

// Names returns the sorted names of the entries of a directory.
func Names(path string) ([]string, error) {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.Readable()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)

	return names, err
}

func isEmpty(dir *paths.Dir) (bool, error) {
	f, err := dir.Readable()
	if err != nil {
		return false, err
	}
	defer f.Close()
	if _, err = f.Readdirnames(1); errors.Is(err, io.EOF) {
		return true, nil
	}

	return false, err
}
