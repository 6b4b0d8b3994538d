package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// approvals remember for a moment which directories were reached safely, so
// that many files of one directory cost one walk. No descriptor is kept: a
// directory is opened again, and taken when it is the very one with the same
// owner and mode. The zero value remembers nothing yet.
type approvals struct {
	mu    sync.Mutex
	since time.Time
	known map[string]approval
}

// approval is a directory that a walk has reached.
type approval struct {
	id        fileID
	uid, mode uint32
}

const (
	// approvalLife bounds how long a walk counts: until then nobody gives away a
	// directory above and has its new owner lead its path back here.
	approvalLife = time.Second
	maxApprovals = 1 << 12
)

// place is a name in an open directory, which whoever gets the place closes.
type place struct {
	dir  *Dir
	name string
	st   unix.Stat_t
}

func (p *place) path() string { return filepath.Join(p.dir.path, p.name) }

// stat looks at the place, without following a link.
func (p *place) stat() error {
	err := Retry(func() error { return unix.Fstatat(p.dir.fd, p.name, &p.st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return &fs.PathError{Op: "lstat", Path: p.path(), Err: err}
	}

	return nil
}

// dir opens the directory at path. Errors are those of OpenDir.
func (a *approvals) dir(path string) (*Dir, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return a.open(newWalk(), full)
}

// parent opens the directory that path is in. Errors are those of OpenDir.
func (a *approvals) parent(path string) (*place, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, err := a.open(newWalk(), filepath.Dir(full))
	if err != nil {
		return nil, err
	}
	if full == "/" {
		return &place{dir: dir, name: "."}, nil
	}

	return &place{dir: dir, name: filepath.Base(full)}, nil
}

// find looks for what a path names; follow leads on through a link there.
func (a *approvals) find(path string, follow bool) (*place, error) {
	at, err := a.parent(path)
	if err != nil {
		return nil, err
	}
	if follow {
		err = newWalk().target(at, false)
	} else {
		err = at.stat()
	}
	if err != nil {
		return nil, errors.Join(err, at.dir.Close())
	}

	return at, nil
}

// open opens a directory by an absolute, clean path.
func (a *approvals) open(w *walk, path string) (*Dir, error) {
	if path == "/" {
		return w.root()
	}
	if dir, ok := a.reopen(w, path); ok {
		return dir, nil
	}
	parent, err := a.open(w, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	dir, err := w.enter(parent, filepath.Base(path), false)
	if err == nil {
		a.add(dir)
	}

	return dir, err
}

// reopen opens a directory that an earlier walk has reached.
func (a *approvals) reopen(w *walk, path string) (*Dir, bool) {
	a.mu.Lock()
	known, ok := a.known[path]
	ok = ok && time.Since(a.since) < approvalLife
	a.mu.Unlock()
	if !ok {
		return nil, false
	}
	dir, err := w.open(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return nil, false
	}
	if known != dir.approval() {
		_ = dir.Close()
		return nil, false
	}

	return dir, true
}

func (a *approvals) add(dir *Dir) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxApprovals || time.Since(a.since) >= approvalLife {
		a.known, a.since = map[string]approval{}, time.Now()
	}
	a.known[dir.path] = dir.approval()
}

// look returns the entry of a path.
func (a *approvals) look(path string, follow bool) (Entry, error) {
	at, err := a.find(path, follow)
	switch {
	case IsAbsent(err):
		return Entry{Path: path}, nil
	case err != nil:
		return Entry{Path: path}, err
	}
	entry := entryOf(path, &at.st)
	entry.followed, entry.from = follow, a

	return entry, at.dir.Close()
}
