package paths

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Resolver walks to directories and caches briefly which it reached safely, so that many files of one
// directory need one walk. It holds no descriptor, because that would prevent an unmount. It opens the
// directory again and accepts it if it is the same directory with the same owner and mode. The zero value has
// an empty cache.
type Resolver struct {
	mu    sync.RWMutex
	since time.Time
	known map[string]approval
}

// approval is a directory that a walk has reached.
type approval struct {
	dev, inode uint64
	uid, mode  uint32
	party      Party
}

const (
	// approvalLife is the lifetime of an approval. It is too short for a user to give a directory away and
	// for the new owner to redirect its path to the same directory.
	approvalLife = 20 * time.Millisecond
	maxApprovals = 1 << 12
)

// Place is a name in an open directory. The caller closes it.
type Place struct {
	Dir  *Dir
	Name string

	st unix.Stat_t
}

func (p *Place) stat() error { return p.Dir.Stat(p.Name, &p.st) }

// Dir opens the directory at path. It returns the errors of OpenDir.
func (r *Resolver) Dir(path string) (*Dir, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return r.open(new(walk), full)
}

// Parent opens the parent directory of path. It returns the errors of OpenDir.
func (r *Resolver) Parent(path string) (*Place, error) {
	return r.parent(path, func(dir string) (*Dir, error) { return r.open(new(walk), dir) })
}

// ReadableParent opens the parent directory of path for reading and Sync.
func (r *Resolver) ReadableParent(path string) (*Place, error) {
	return r.parent(path, r.openReadable)
}

func (r *Resolver) parent(path string, open func(dir string) (*Dir, error)) (*Place, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := open(filepath.Dir(full))
	if err != nil {
		return nil, err
	}
	if full == "/" {
		return &Place{Dir: dir, Name: "."}, nil
	}

	return &Place{Dir: dir, Name: filepath.Base(full)}, nil
}

// Find returns the place that a path names. With follow it follows a link there.
func (r *Resolver) Find(path string, follow bool) (*Place, error) {
	at, err := r.Parent(path)
	if err != nil {
		return nil, err
	}
	if follow {
		err = new(walk).target(at, false)
	} else {
		err = at.stat()
	}
	if err != nil {
		return nil, errors.Join(err, at.Dir.Close())
	}

	return at, nil
}

// open opens a directory by an absolute, clean path.
func (r *Resolver) open(w *walk, path string) (*Dir, error) {
	if path == "/" {
		return w.root()
	}
	if dir, ok := r.reopen(w, path, unix.O_PATH); ok {
		return dir, nil
	}
	parent, err := r.open(w, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	dir, err := w.enter(parent, filepath.Base(path), false)
	if err == nil {
		r.add(dir)
	}

	return dir, err
}

// openReadable opens a directory like open, for reading.
func (r *Resolver) openReadable(path string) (*Dir, error) {
	if dir, ok := r.reopen(new(walk), path, unix.O_RDONLY); ok {
		return dir, nil
	}
	dir, err := r.open(new(walk), path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()

	return new(walk).open(dir.fd, ".", path, unix.O_RDONLY)
}

// reopen opens a directory that an earlier walk has reached.
func (r *Resolver) reopen(w *walk, path string, access int) (*Dir, bool) {
	known, ok := r.get(path)
	if !ok {
		return nil, false
	}
	dir, err := w.open(unix.AT_FDCWD, path, path, access)
	if err != nil {
		return nil, false
	}
	if known != dir.approval {
		_ = dir.Close()
		return nil, false
	}

	return dir, true
}

func (r *Resolver) get(path string) (approval, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	known, ok := r.known[path]

	return known, ok && time.Since(r.since) < approvalLife
}

func (r *Resolver) add(dir *Dir) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxApprovals || time.Since(r.since) >= approvalLife {
		r.known, r.since = map[string]approval{}, time.Now()
	}
	r.known[dir.path] = dir.approval
}

// Stat returns the attributes of the file that a path names. With follow it follows a link there. In a
// recently approved directory this is one system call without opening a file. That is safe because Stat
// changes nothing, and a later reader walks to the file and compares. foreign is the error of Dir.Keeps.
func (r *Resolver) Stat(path string, st *unix.Stat_t, follow bool) (foreign, err error) {
	if known, ok := r.get(parentOf(path)); ok && !follow {
		err := Retry(func() error { return unix.Fstatat(unix.AT_FDCWD, path, st, unix.AT_SYMLINK_NOFOLLOW) })
		if err != nil {
			return nil, &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
		return keeps(known.party, path, st), nil
	}
	at, err := r.Find(path, follow)
	if err != nil {
		return nil, err
	}
	*st = at.st

	return at.Dir.Keeps(path, st), at.Dir.Close()
}

// MayWrite returns an error if the process may not create, replace or remove entries of the directory at
// path. For a recently approved directory this is one system call, as in Stat.
func (r *Resolver) MayWrite(path string) error {
	if _, ok := r.get(path); ok && mayWrite(unix.AT_FDCWD, path) == nil {
		return nil
	}
	dir, err := r.Dir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := mayWrite(dir.fd, "."); err != nil {
		return &fs.PathError{Op: "write in", Path: path, Err: err}
	}

	return nil
}

func mayWrite(at int, name string) error {
	return Retry(func() error { return unix.Faccessat(at, name, unix.W_OK|unix.X_OK, unix.AT_EACCESS) })
}

// parentOf returns the parent directory of a path as written, empty if the last element is not a name. For an
// unclean path this may differ from the directory that a walk reaches.
func parentOf(path string) string {
	at := strings.LastIndexByte(path, '/')
	switch name := path[at+1:]; name {
	case "", ".", "..":
		return ""
	default:
		return path[:max(at, 0)]
	}
}
