package paths

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// keptOpen is the number of levels that stay open during the removal. A deeper level is opened
	// again from its child.
	keptOpen = 32
	// namesRead is the number of names that are read at a time.
	namesRead = 256
)

// errMoved is returned if another process moved a directory during the removal.
var errMoved = errors.New("was moved while it was removed")

// directoryID identifies a directory of the machine.
type directoryID struct{ dev, inode uint64 }

// removal removes a tree level by level. A deep tree needs neither more descriptors nor more stack.
type removal struct {
	levels []level
	// mount is the ID of the mount of the tree. The removal never enters another mount.
	mount string
	// stuck are the directories that cannot be emptied.
	stuck   map[directoryID]bool
	removed int
	// first is the first error.
	first error
}

// level is a directory on the path to the current entry. Only deep levels are closed.
type level struct {
	dir *os.File
	id  directoryID
	// names are the names that were read and not yet removed. The first one is being removed.
	names []string
	// why is the error of removing the directory before it was entered.
	why error
	// whole is set after the last name was read.
	whole, removed, failed bool
}

// RemoveTree removes a path like RemoveTreeIn. A missing path is not an error.
func RemoveTree(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	in, err := OpenDir(filepath.Dir(path))
	if IsAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()

	return RemoveTreeIn(ctx, in, filepath.Base(path))
}

// RemoveTreeIn removes a name in a directory and everything below it, without following links. If it
// finds a mount point, it removes nothing and returns ErrMounted. It continues after entries that
// cannot be removed and returns the first error. It stops when ctx ends.
func RemoveTreeIn(ctx context.Context, in *Dir, name string) error {
	mount, err := MountID(in.Fd())
	if err == nil {
		err = RefuseMount(in.Fd(), name)
	}
	if err != nil {
		return err
	}
	dir, err := in.Readable()
	if err != nil {
		return err
	}
	r := removal{mount: mount, stuck: map[directoryID]bool{}, levels: []level{{dir: dir, names: []string{name}, whole: true}}}
	defer func() {
		for _, l := range r.levels {
			_ = l.close()
		}
	}()
	for more := true; more; {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("%w, %d of its files and directories are removed and stay removed", err, r.removed)
		}
		more = r.step()
	}

	return r.first
}

// step removes one name, or enters or leaves a directory. It returns false after the last step.
func (r *removal) step() bool {
	l := r.last()
	name, err := l.name()
	if err != nil {
		r.fail(&fs.PathError{Op: "read", Path: r.path(), Err: err})
	}
	if name == "" || err != nil {
		if len(r.levels) == 1 {
			return false
		}
		r.leave()
		return true
	}
	switch err := Unlink(int(l.dir.Fd()), name); err {
	case nil:
		l.names, l.removed = l.names[1:], true
		r.removed++
	default:
		r.enter(name, err)
	}

	return true
}

func (r *removal) last() *level { return &r.levels[len(r.levels)-1] }

func (l *level) name() (string, error) {
	if len(l.names) == 0 && !l.whole {
		var err error
		if l.names, err = l.dir.Readdirnames(namesRead); err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
	}
	if len(l.names) == 0 {
		return "", nil
	}

	return l.names[0], nil
}

// enter enters a directory that could not be removed because of why. It fails if the name is not a
// directory, unless another process has just replaced the directory: step then removes the new entry.
func (r *removal) enter(name string, why error) {
	l := r.last()
	dir, id, err := r.open(int(l.dir.Fd()), name)
	switch full := why == unix.ENOTEMPTY || why == unix.EEXIST; {
	case err == nil:
	case errors.Is(err, ErrMounted):
		r.skip(ErrMounted)
		return
	case full && (IsAbsent(err) || errors.Is(err, unix.ELOOP)):
		return
	case full:
		r.skip(errors.Unwrap(err))
		return
	default:
		r.skip(why)
		return
	}
	if r.stuck[id] {
		_ = dir.Close()
		r.skip(why)
		return
	}
	if len(r.levels) > keptOpen {
		_ = l.close()
		l.names = nil
	}
	r.levels = append(r.levels, level{dir: dir, id: id, why: why})
}

// skip leaves the current name in place.
func (r *removal) skip(why error) {
	r.fail(&fs.PathError{Op: "remove", Path: r.path(), Err: why})
	l := r.last()
	l.names = l.names[1:]
}

// fail records that an entry of the last level cannot be removed.
func (r *removal) fail(err error) {
	r.last().failed = true
	if r.first == nil {
		r.first = err
	}
}

// leave returns to the parent directory. It does not enter an empty directory again that cannot be
// removed.
func (r *removal) leave() {
	child := r.last()
	if !child.removed && !child.failed {
		r.fail(&fs.PathError{Op: "remove", Path: r.path(), Err: child.why})
	}
	if child.failed {
		r.stuck[child.id] = true
	}
	above := &r.levels[len(r.levels)-2]
	if above.dir != nil {
		r.pop()
		return
	}
	dir, id, err := r.open(int(child.dir.Fd()), "..")
	above.dir = dir
	if err == nil && id != above.id {
		err = errMoved
	}
	r.pop()
	if err != nil {
		r.climb(err)
	}
}

// climb returns to the deepest level that is always open, because another process moved a directory
// below it.
func (r *removal) climb(err error) {
	for len(r.levels) > keptOpen {
		r.pop()
	}
	r.skip(err)
}

func (r *removal) pop() {
	_ = r.last().close()
	r.levels = r.levels[:len(r.levels)-1]
}

func (l *level) close() error {
	if l.dir == nil {
		return nil
	}
	dir := l.dir
	l.dir = nil

	return dir.Close()
}

// path returns the path of the current entry, as far as it is known.
func (r *removal) path() string {
	path := r.levels[0].dir.Name()
	for i := range min(len(r.levels), keptOpen) {
		if names := r.levels[i].names; len(names) > 0 {
			path = filepath.Join(path, names[0])
		}
	}
	if len(r.levels) > keptOpen {
		path += "/…"
	}

	return path
}

// open opens a directory by its name in an open one. It returns ErrMounted for a
// directory that was mounted during the removal.
func (r *removal) open(in int, name string) (*os.File, directoryID, error) {
	fd, err := OpenAt(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, directoryID{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	dir := os.NewFile(uintptr(fd), name)
	switch mount, err := MountID(fd); {
	case err == nil && mount != r.mount:
		err = ErrMounted
		fallthrough
	case err != nil:
		_ = dir.Close()
		return nil, directoryID{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	var st unix.Stat_t
	if err := Retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		_ = dir.Close()
		return nil, directoryID{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}

	return dir, directoryID{uint64(st.Dev), st.Ino}, nil
}

// Unlink removes a name: a file, a link or an empty directory. A missing name is not an error.
// Errors are system errors.
func Unlink(dir int, name string) error {
	err := Retry(func() error { return unix.Unlinkat(dir, name, 0) })
	if err == unix.EISDIR {
		err = Retry(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
	}
	if err == unix.ENOENT {
		return nil
	}

	return err
}
