package state

import (
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// Checked caches the result of a successful check of a state directory: while each directory on its path is
// the same one with the same owner and mode, a walk would have the same result with several times as many
// system calls. It is safe for concurrent use. The zero value is empty.
type Checked struct {
	mu  sync.Mutex
	dir string
	way []step
}

// step contains the attributes of a directory that a walk checks.
type step struct {
	dev, inode uint64
	uid, mode  uint32
}

// Make calls the function Make unless the cached check is still valid.
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

// check calls the function check in the same way.
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

// stands reports whether a directory and its path are unchanged since the check.
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

// wayTo returns the directories on a path, the last one first. It returns false if one of them is not a
// directory, such as a link: only a walk can resolve it.
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
