package files

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// ReadLink returns the target of the link at path, as written. Anything else at path is an error.
func ReadLink(path string) (string, error) {
	at, err := new(paths.Resolver).Parent(path)
	if err != nil {
		return "", err
	}
	defer at.Dir.Close()
	buffer := make([]byte, unix.PathMax)
	var length int
	if err := paths.Retry(func() (err error) { length, err = unix.Readlinkat(at.Dir.Fd(), at.Name, buffer); return err }); err != nil {
		return "", &fs.PathError{Op: "readlink", Path: path, Err: err}
	}

	return string(buffer[:length]), nil
}

// LinkOwner returns the owner and group of a new link at path: the running user, or the owner of the
// directory if that is another user, who could otherwise move a link of root elsewhere.
func LinkOwner(path string) (uid, gid uint32, err error) {
	at, err := new(paths.Resolver).Parent(path)
	if err != nil {
		return 0, 0, err
	}
	defer at.Dir.Close()
	var st unix.Stat_t
	if at.Dir.Party() < 0 {
		return uint32(os.Geteuid()), uint32(os.Getegid()), nil
	}
	err = at.Dir.Stat(".", &st)

	return st.Uid, st.Gid, err
}

// MayLink returns paths.ErrUnsafe if a link of a user must not be made at path: the directory belongs to
// another untrusted user.
func MayLink(path string, uid uint32) error {
	at, err := new(paths.Resolver).Parent(path)
	if err != nil {
		return err
	}
	defer at.Dir.Close()

	return mayLink(at.Dir, uid)
}

func mayLink(dir *paths.Dir, uid uint32) error {
	switch party, me := dir.Party(), uint32(os.Geteuid()); {
	case party == paths.Anybody:
		return fmt.Errorf("%w: %s, who could move a link of %s elsewhere: %s", paths.ErrUnsafe, party.In(dir.Path()), paths.OwnerName(uid), party.Remedy(dir.Path()))
	case party >= 0 && party != paths.Party(uid):
		return fmt.Errorf("%w: %s belongs to %s, who could move a link of %s elsewhere: give the link the same owner", paths.ErrUnsafe, dir.Path(), paths.OwnerName(uint32(party)), paths.OwnerName(uid))
	case me != 0 && uid != me:
		return fmt.Errorf("%w: only root gives a link to %s", fs.ErrPermission, paths.OwnerName(uid))
	default:
		return nil
	}
}

// Link makes a link at path in one step: it replaces a link, a file or an empty directory. It returns the errors
// of MayLink.
func (d *Disk) Link(path, target string, uid, gid uint32) error {
	return d.change(path, func(dir *paths.Dir, name string) error {
		if err := mayLink(dir, uid); err != nil {
			return err
		}
		if err := d.RecordLitter(dir.Path()); err != nil {
			return err
		}
		if dir.Party() == paths.Trusted || os.Geteuid() != 0 {
			return placeLink(dir, name, target, uid, gid)
		}
		// The owner of the directory may exchange its entries at any time, so muster acts with the rights of
		// that user there.
		return paths.As(uid, gid, nil, func() error { return placeLink(dir, name, target, uid, gid) })
	})
}

// placeLink makes a temporary link and gives it its name. rename replaces everything but a directory.
func placeLink(dir *paths.Dir, name, target string, uid, gid uint32) (err error) {
	temp := tempPrefix + rand.Text()
	if err := paths.Retry(func() error { return unix.Symlinkat(target, dir.Fd(), temp) }); err != nil {
		return fmt.Errorf("could not create temporary link: %w", &os.LinkError{Op: "symlink", Old: target, New: tempShown(dir), Err: err})
	}
	defer func() {
		if err != nil {
			_ = unix.Unlinkat(dir.Fd(), temp, 0)
		}
	}()
	if err := chownLink(dir, temp, uid, gid); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := dir.Stat(name, &st); err == nil && kindOf(&st) == Directory {
		if err := unix.Unlinkat(dir.Fd(), name, unix.AT_REMOVEDIR); err != nil {
			return busy(dir, name, &os.PathError{Op: "rmdir", Path: dir.Path() + "/" + name, Err: err})
		}
	}

	return rename(dir, temp, name)
}

// chownLink changes the owner of a new link, by its descriptor.
func chownLink(dir *paths.Dir, temp string, uid, gid uint32) error {
	f, err := openAt(dir.Fd(), temp, tempShown(dir), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.stat()
	if err != nil || st.Uid == uid && st.Gid == gid {
		return err
	}
	if kindOf(st) != Link || st.Nlink != 1 || st.Uid != uid && st.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%s %w", tempShown(dir), ErrReplaced)
	}
	if err := paths.Retry(func() error { return unix.Fchownat(f.fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH) }); err != nil {
		return fmt.Errorf("could not set owner: %w", &os.PathError{Op: "chown", Path: tempShown(dir), Err: err})
	}

	return nil
}
