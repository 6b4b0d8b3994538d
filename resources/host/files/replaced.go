package files

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// maxReleasing is how many replaced files are given back at the same time beside what goes on.
const maxReleasing = 8

// replaced keeps files that are replaced until that is durable. With the last name of a file
// its blocks are free, and where the device is told so at once (discard), or the file is large,
// that takes milliseconds for which the rename would wait.
type replaced struct {
	count     atomic.Int32
	releasing sync.WaitGroup
	// settling is held for writing while somebody waits for releasing: none begins meanwhile.
	settling sync.RWMutex
}

// keep opens what has a name, without following it; less than 0 for nothing.
func (*replaced) keep(dir *paths.Dir, name string) int {
	fd, err := unix.Openat(dir.Fd(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1 // the rename then waits, or fails for the same reason
	}

	return fd
}

// release gives it back, beside what goes on unless that falls behind.
func (r *replaced) release(fd int) {
	if fd < 0 {
		return
	}
	if r.count.Add(1) > maxReleasing {
		_ = unix.Close(fd)
		r.count.Add(-1)
		return
	}
	r.settling.RLock()
	defer r.settling.RUnlock()
	r.releasing.Go(func() {
		_ = unix.Close(fd)
		r.count.Add(-1)
	})
}

// Settle waits until no file is open any more that Write replaced: what is about to start may
// unmount its file system.
func (d *Disk) Settle() {
	d.replaced.settling.Lock()
	defer d.replaced.settling.Unlock()
	d.replaced.releasing.Wait()
}
