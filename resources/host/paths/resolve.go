package paths

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks limits the links of one walk, as in the kernel. maxNames limits the names in their texts: the
// owner of a directory on the path decides the number of links.
const (
	maxLinks = 40
	maxNames = 1000
)

// walk resolves a path like CHASE_SAFE of systemd-tmpfiles: component by component on descriptors, and from a
// directory or link of an untrusted user only to directories of that user. So no user can redirect a
// privileged process, even by repeated replacements.
type walk struct{ links, names int }

func (w *walk) root() (*Dir, error) { return w.open(unix.AT_FDCWD, "/", "/", unix.O_PATH) }

// open opens a directory. With O_NOFOLLOW a link is ENOTDIR. O_DIRECTORY makes the kernel mount the file
// system of an automounter.
func (w *walk) open(at int, name, path string, flags int) (*Dir, error) {
	fd, err := OpenAt(at, name, unix.O_DIRECTORY|flags)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	dir := &Dir{fd: fd, path: path}
	if err := w.stat(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}

	return dir, nil
}

func (w *walk) stat(dir *Dir) error {
	var st unix.Stat_t
	if err := Retry(func() error { return unix.Fstat(dir.fd, &st) }); err != nil {
		return &fs.PathError{Op: "stat", Path: dir.path, Err: err}
	}
	dir.approval = approval{dev: uint64(st.Dev), inode: st.Ino, uid: st.Uid, mode: st.Mode, party: PartyOf(st.Mode, st.Uid)}

	return nil
}

// through walks from a directory along a relative path and leaves the directory open. With public, all users
// must be able to enter the directories of trusted owners on the path, because an untrusted link leads there.
func (w *walk) through(from *Dir, rest string, public bool) (*Dir, error) {
	dir, err := w.open(from.fd, ".", from.path, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(rest, "/") {
		if name == "" || name == "." {
			continue
		}
		next, err := w.enter(dir, name, public)
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}

	return dir, nil
}

// enter walks from a directory to a subdirectory.
func (w *walk) enter(dir *Dir, name string, public bool) (*Dir, error) {
	path := filepath.Join(dir.path, name)
	next, err := w.open(dir.fd, name, path, unix.O_PATH|unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOTDIR) {
		return w.follow(dir, name, public)
	}
	if err != nil {
		return nil, err
	}
	if err := w.check(dir, next, public); err != nil {
		return nil, errors.Join(err, next.Close())
	}

	return next, nil
}

func (w *walk) check(dir, next *Dir, public bool) error {
	switch {
	case !dir.party.MayLead(next.mode, next.uid):
		return fmt.Errorf("%w: %s belongs to %s, but %s: %s", ErrUnsafe, next.path, OwnerName(next.uid), dir.party.In(dir.path), dir.party.Remedy(dir.path))
	case public && next.party == Trusted && next.mode&unix.S_IXOTH == 0:
		return fmt.Errorf("%w: a link of another user leads through %s, which not everybody may enter", ErrUnsafe, next.path)
	default:
		return nil
	}
}

// follow walks to the target directory of a link.
func (w *walk) follow(dir *Dir, name string, public bool) (*Dir, error) {
	l, err := w.readLink(dir, name)
	if err != nil {
		return nil, err
	}
	start, err := l.start(w, dir)
	if err != nil {
		return nil, err
	}
	defer start.Close()
	end, err := w.through(start, l.text, public || l.untrusted(dir))
	if err != nil {
		return nil, err
	}
	if err := l.check(dir, end.mode, end.uid); err != nil {
		return nil, errors.Join(err, end.Close())
	}
	end.path = l.path

	return end, nil
}

// target moves a place to the target of its link, if it is a link, and returns the attributes. After an error
// the place is unchanged.
func (w *walk) target(at *Place, public bool) error {
	if err := at.stat(); err != nil || !isLink(&at.st) {
		return err
	}
	l, err := w.readLink(at.Dir, at.Name)
	if err != nil {
		return err
	}
	start, err := l.start(w, at.Dir)
	if err != nil {
		return err
	}
	defer start.Close()
	public = public || l.untrusted(at.Dir)
	above, name := filepath.Split(strings.TrimRight(l.text, "/"))
	if name == "" || name == "." || name == ".." {
		above, name = l.text, "."
	}
	dir, err := w.through(start, above, public)
	if err != nil {
		return err
	}
	end := Place{Dir: dir, Name: name}
	if err := w.target(&end, public); err != nil {
		return errors.Join(err, end.Dir.Close())
	}
	if err := l.check(at.Dir, end.st.Mode, end.st.Uid); err != nil {
		return errors.Join(err, end.Dir.Close())
	}
	_ = at.Dir.Close()
	*at = end

	return nil
}

// link is a symbolic link that was read.
type link struct {
	path, text string
	uid        uint32
	owner      Party
}

// readLink reads a link in a directory. Its owner and text come from one inode. Another kind of file is
// ENOTDIR.
func (w *walk) readLink(dir *Dir, name string) (*link, error) {
	path := filepath.Join(dir.path, name)
	fd, err := OpenAt(dir.fd, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := Retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if !isLink(&st) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	if w.links++; w.links > maxLinks {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	text := make([]byte, unix.PathMax)
	n := 0
	if err := Retry(func() (err error) { n, err = unix.Readlinkat(fd, "", text); return err }); err != nil {
		return nil, &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	if w.names += 1 + bytes.Count(text[:n], []byte("/")); w.names > maxNames {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}

	return &link{path: path, text: string(text[:n]), uid: st.Uid, owner: PartyOf(st.Mode, st.Uid)}, nil
}

func (l *link) start(w *walk, dir *Dir) (*Dir, error) {
	if filepath.IsAbs(l.text) {
		return w.root()
	}

	return w.open(dir.fd, ".", dir.path, unix.O_PATH)
}

// untrusted reports whether a user other than root and the running user created the link or could replace it.
func (l *link) untrusted(dir *Dir) bool {
	return dir.party != Trusted || l.owner != Trusted
}

func (l *link) check(dir *Dir, mode, uid uint32) error {
	switch {
	case !l.owner.MayLead(mode, uid):
		return fmt.Errorf("%w: %s is a link of %s and leads to %s, which belongs to %s: write the path it leads to, or give the link to root", ErrUnsafe, l.path, OwnerName(l.uid), l.text, OwnerName(uid))
	case !dir.party.MayLead(mode, uid):
		return fmt.Errorf("%w: %s is a link to %s, which belongs to %s, but %s: write the path it leads to", ErrUnsafe, l.path, l.text, OwnerName(uid), dir.party.In(filepath.Dir(l.path)))
	default:
		return nil
	}
}

// OpenAt opens a name in an open directory, with O_CLOEXEC.
func OpenAt(at int, name string, flags int) (fd int, err error) {
	err = Retry(func() error {
		fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, 0)
		return err
	})

	return fd, err
}

func isLink(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFLNK }

// Links resolves paths without regard to owners. Use the results to compare paths, not to access files,
// because other users may change the links. It follows as many links as a walk. Create it with Links{}. It
// caches results.
type Links map[string]string

// Resolve returns an absolute path after following all links in it. It does not change the part below a
// missing name, or below a name with more links than a walk follows.
func (l Links) Resolve(path string) (at, target string) {
	dir, name := l.dir(filepath.Dir(path)), filepath.Base(path)

	return filepath.Join(dir, name), follow(dir, name)
}

func (l Links) dir(path string) string {
	if path == "/" || path == "." {
		return path
	}
	real, known := l[path]
	if !known {
		real = follow(l.dir(filepath.Dir(path)), filepath.Base(path))
		l[path] = real
	}

	return real
}

// follow returns the target of a name in a directory without links.
func follow(dir, name string) string {
	var t trace
	if real := t.from(dir, name); !t.isOver() {
		return real
	}

	return filepath.Join(dir, name)
}

// trace counts the followed links and the names in their texts.
type trace struct{ links, names int }

func (t *trace) isOver() bool { return t.links > maxLinks || t.names > maxNames }

// from returns the target of a path relative to a directory, up to the limits.
func (t *trace) from(dir, path string) string {
	for name := range strings.SplitSeq(path, "/") {
		if t.isOver() {
			break
		}
		if name == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, name)
		text, err := os.Readlink(next)
		if err != nil {
			dir = next
			continue
		}
		t.links++
		t.names += 1 + strings.Count(text, "/")
		if filepath.IsAbs(text) {
			dir = "/"
		}
		dir = t.from(dir, text)
	}

	return dir
}
