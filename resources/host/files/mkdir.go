package files

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MakeDirectory makes path and its missing parents and sets the attributes of
// path, which keeps its special bits. The parents have mode 0755 and belong to
// the process, below a directory of another user to that user. A file as a
// parent is ErrNoParent, as path ErrNotDirectory; a link as path is ErrLink.
// After an error the directories it made are removed.
func (d *Disk) MakeDirectory(path string, a Attrs) error {
	return d.inParent(path, func(parent *Dir, name string) error {
		dir, made, err := makeIn(parent, name, a)
		if err != nil {
			return err
		}
		defer dir.Close()
		if made {
			return nil
		}
		return setAttrs(dir.fd, dir.path, a)
	})
}

// inParent calls f with the parent of path, which is made when it is missing and
// removed when f fails.
func (d *Disk) inParent(path string, f func(parent *Dir, name string) error) error {
	at, err := d.changing(path)
	if !errors.Is(err, unix.ENOENT) {
		if err != nil {
			return err
		}
		defer at.dir.Close()
		return f(at.dir, at.name)
	}

	return d.inParent(filepath.Dir(path), func(above *Dir, base string) error {
		dir, made, err := makeIn(above, base, impliedAttrs(above))
		if err != nil {
			return err
		}
		defer dir.Close()
		err = newWalk().check(above, dir, false)
		if err == nil {
			err = f(dir, filepath.Base(path))
		}
		if err != nil && made {
			// A directory that others use by now stays.
			_ = unix.Unlinkat(above.fd, base, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// impliedAttrs returns the attributes of a directory that is made in another one
// because something below needs it: it belongs to one to whom a walk goes on.
func impliedAttrs(above *Dir) Attrs {
	a := OwnAttrs(0o755)
	a.GID = anyGroup
	if above.party >= 0 {
		a.UID = above.uid
	}

	return a
}

// anyGroup keeps the group that the system gave to a new directory; it is not a
// valid group.
const anyGroup = ^uint32(0)

// makeIn makes one directory with attributes, or opens the existing one. Nobody
// else can enter it before it has them; one that cannot have them is removed.
func makeIn(parent *Dir, name string, a Attrs) (dir *Dir, made bool, err error) {
	full := filepath.Join(parent.path, name)
	switch err := Retry(func() error { return unix.Mkdirat(parent.fd, name, 0o700) }); err {
	case nil:
		made = true
	case unix.EEXIST:
	default:
		return nil, false, &fs.PathError{Op: "mkdir", Path: full, Err: err}
	}
	dir, err = newWalk().open(parent.fd, name, full, unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, false, notDirectory(parent, name)
	}
	if err != nil {
		return nil, false, err
	}
	if !made {
		return dir, false, nil
	}
	if err := errors.Join(furnish(dir, a), parent.sync()); err != nil {
		_ = unix.Unlinkat(parent.fd, name, unix.AT_REMOVEDIR)
		return nil, false, errors.Join(err, dir.Close())
	}

	return dir, true, nil
}

// furnish sets the attributes of a new directory. It is empty, or the owner of
// its parent has exchanged it with another one.
func furnish(dir *Dir, a Attrs) error {
	empty, err := dir.isEmpty()
	if err == nil && !empty {
		err = fmt.Errorf("%s %w", dir.path, ErrReplaced)
	}
	if err != nil {
		return err
	}
	if err := setAttrs(dir.fd, dir.path, a); err != nil {
		return err
	}

	return newWalk().stat(dir)
}

// notDirectory returns what is in the place of a directory.
func notDirectory(parent *Dir, name string) error {
	at := &place{dir: parent, name: name}
	switch err := at.stat(); {
	case err != nil:
		return err
	case kindOf(&at.st) == Link:
		return fmt.Errorf("%s %w", at.path(), ErrLink)
	default:
		return fmt.Errorf("%s %w", at.path(), ErrNotDirectory)
	}
}
