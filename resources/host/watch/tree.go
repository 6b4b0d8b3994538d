package watch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a tree. The owner of a directory in it may create any number of files. A tree uses at most a
// quarter of the kernel's watches for the user, which all programs of root share.
const (
	maxTreeDirs    = 10_000
	maxTreeEntries = 200_000
	maxTreeDepth   = 200
	treeShare      = 4
)

// tree contains the watched directories of a tree.
type tree struct {
	watch *pathWatch
	dirs  map[*dir]struct{}
	// scanned is the time of the last scan, err its error.
	scanned time.Time
	err     error
}

// scan watches exactly the directories of the tree. After an error it watches none.
func (t *tree) scan(n *inotify) error {
	defer func() { t.scanned = time.Now() }()
	former := t.dirs
	t.dirs = map[*dir]struct{}{}
	err := t.walk(n)
	if err != nil {
		t.prune(n)
	}
	for d := range t.dirs {
		if _, had := former[d]; !had {
			d.trees = append(d.trees, t)
		}
	}
	for d := range former {
		if _, has := t.dirs[d]; !has {
			d.trees = without(d.trees, t)
		}
		n.release(d)
	}

	return err
}

// walk adds the directories at and below the path of the point.
func (t *tree) walk(n *inotify) error {
	to, err := n.walk(t.watch.point.Name)
	if err != nil {
		return err
	}
	for _, h := range to.hops {
		n.release(h.dir)
	}
	if to.end == nil {
		return nil
	}
	defer func() {
		_ = unix.Close(to.fd)
		n.release(to.end)
	}()
	s := scanner{inotify: n, dirs: t.dirs, most: min(maxTreeDirs, n.most/treeShare)}

	return s.directory(to.fd, ".", 0)
}

// prune ends the watches of the tree.
func (t *tree) prune(n *inotify) {
	for d := range t.dirs {
		d.trees = without(d.trees, t)
		n.release(d)
	}
	t.dirs = nil
}

// scanner scans a tree.
type scanner struct {
	inotify *inotify
	dirs    map[*dir]struct{}
	// most limits the directories.
	most, entries int
}

// directory watches a directory, reads it, and continues with its subdirectories. It skips a directory that
// no longer exists or cannot be read.
func (s *scanner) directory(parent int, name string, depth int) error {
	fd, err := open(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return limit("open", err)
	}
	if err != nil {
		return nil
	}
	file := os.NewFile(uintptr(fd), procPath(fd))
	defer func() { _ = file.Close() }()
	d, err := s.inotify.watch(fd)
	if err != nil {
		return err
	}
	if _, twice := s.dirs[d]; twice {
		s.inotify.release(d)
		return nil
	}
	s.dirs[d] = struct{}{}
	if len(s.dirs) > s.most || depth > maxTreeDepth {
		return fmt.Errorf("%w: it has more than %d directories (at most a quarter of fs.inotify.max_user_watches), or more than %d within each other", ErrLimit, s.most, maxTreeDepth)
	}

	return s.entriesOf(file, fd, depth)
}

// entriesOf continues with the subdirectories of a directory.
func (s *scanner) entriesOf(file *os.File, fd, depth int) error {
	const chunk = 1000
	for {
		found, err := file.ReadDir(chunk)
		if s.entries += len(found); s.entries > maxTreeEntries {
			return fmt.Errorf("%w: it has more than %d entries", ErrLimit, maxTreeEntries)
		}
		for _, entry := range found {
			if entry.Type() != fs.ModeDir {
				continue
			}
			if err := s.directory(fd, entry.Name(), depth+1); err != nil {
				return err
			}
		}
		if err != nil || len(found) == 0 {
			return ignoreEnd(err)
		}
	}
}

// ignoreEnd ignores the error at the end of a directory and of a removed directory.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
		return nil
	}

	return err
}
