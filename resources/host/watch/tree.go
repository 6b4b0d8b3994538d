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

// The bounds of a tree: whoever owns a directory in it may make as many as they like.
const (
	maxTreeDirs    = 10_000
	maxTreeEntries = 200_000
	maxTreeDepth   = 200
)

// scanShare is the part of the time that going through a tree may take, as its inverse:
// a tree that changes all the time is gone through that much later.
const scanShare = 20

// tree is the directories of a tree.
type tree struct {
	dirs map[*dir]struct{}
	// next is when it may be gone through again.
	next time.Time
	err  error
}

// settleTrees goes through the trees that changed. What is armed by that is looked at
// again.
func (f *files) settleTrees(now time.Time) (again time.Time) {
	for x := range f.trees {
		if now.Before(x.tree.next) {
			again = earlier(again, x.tree.next)
			continue
		}
		delete(f.trees, x)
		x.tree.err = f.scan(x)
		f.judge(x)
		f.wake(x)
	}

	return again
}

// scan watches all directories of a tree, and no others. After an error it watches
// none.
func (f *files) scan(x *Watch) error {
	began := time.Now()
	defer func() { x.tree.next = time.Now().Add(scanShare * time.Since(began)) }()
	former := x.tree.dirs
	x.tree.dirs = map[*dir]struct{}{}
	err := f.scanFrom(x)
	if err != nil {
		f.prune(x)
	}
	for d := range x.tree.dirs {
		if _, had := former[d]; !had {
			d.trees = append(d.trees, x)
		}
	}
	for d := range former {
		if _, has := x.tree.dirs[d]; !has {
			d.trees = without(d.trees, x)
		}
		f.inotify.release(d)
	}

	return err
}

// scanFrom starts at the path of the point.
func (f *files) scanFrom(x *Watch) error {
	hops, end, at, err := f.inotify.walk(x.point.Name)
	if err != nil {
		return err
	}
	for _, h := range hops {
		f.inotify.release(h.dir)
	}
	if end == nil {
		return nil
	}
	defer func() {
		_ = unix.Close(at)
		f.inotify.release(end)
	}()
	s := scanner{inotify: f.inotify, dirs: x.tree.dirs}

	return s.directory(at, ".", 0)
}

// prune watches nothing of a tree any more.
func (f *files) prune(x *Watch) {
	if x.tree == nil {
		return
	}
	for d := range x.tree.dirs {
		d.trees = without(d.trees, x)
		f.inotify.release(d)
	}
	x.tree.dirs = nil
}

// scanner goes through a tree.
type scanner struct {
	inotify *inotify
	dirs    map[*dir]struct{}
	entries int
}

// directory watches a directory, reads it, and goes on to those in it. One that is gone
// by now, or may not be read, is left out.
func (s *scanner) directory(parent int, name string, depth int) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
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
	if len(s.dirs) > maxTreeDirs || depth > maxTreeDepth {
		return fmt.Errorf("%w: it has more than %d directories, or more than %d within each other", ErrLimit, maxTreeDirs, maxTreeDepth)
	}

	return s.entriesOf(file, fd, depth)
}

// entriesOf goes on to the directories in a directory.
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

// ignoreEnd leaves the end of a directory out, and that of one which was removed.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) {
		return nil
	}

	return err
}
