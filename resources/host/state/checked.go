package state

import (
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Checked remembers that a state directory was found safe: while every directory on its
// path is the very one with the same owner and mode, a walk would find the same, for
// several times as many system calls. It is safe for concurrent use; the zero value
// remembers nothing yet.
type Checked struct {
	mu  sync.Mutex
	dir string
	way []step
}

// step is what a walk judges a directory by.
type step struct {
	dev, inode uint64
	uid, mode  uint32
}

// Make is the function Make, which it calls where something on the path is new.
func (c *Checked) Make(dir string) error {
	if c.stands(dir) {
		return nil
	}
	way, ok := wayTo(dir)
	if err := Make(dir); err != nil {
		return err
	}
	if ok {
		c.remember(dir, way)
	}

	return nil
}

// check is the function check in the same way.
func (c *Checked) check(dir string) error {
	if c.stands(dir) {
		return nil
	}
	way, ok := wayTo(dir)
	exists, err := Check(dir)
	if exists && err == nil && ok {
		c.remember(dir, way)
	}

	return err
}

// stands reports whether a directory is the one that was found safe, and on the same way.
func (c *Checked) stands(dir string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != dir || len(c.way) == 0 {
		return false
	}
	way, ok := wayTo(dir)

	return ok && slices.Equal(way, c.way)
}

func (c *Checked) remember(dir string, way []step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dir, c.way = dir, way
}

// wayTo returns the directories on a path, its own first. It is false where one of them
// is none, such as a link: then only a walk knows where it leads.
func wayTo(path string) (way []step, ok bool) {
	at, err := filepath.Abs(path)
	if err != nil {
		return nil, false
	}
	for {
		var st unix.Stat_t
		err := paths.Retry(func() error { return unix.Lstat(at, &st) })
		if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return nil, false
		}
		way = append(way, step{dev: uint64(st.Dev), inode: st.Ino, uid: st.Uid, mode: st.Mode})
		if at == "/" {
			return way, true
		}
		at = filepath.Dir(at)
	}
}
