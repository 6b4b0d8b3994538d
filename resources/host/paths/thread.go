package paths

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// OnThread calls f on a thread that ends with it, so f may change attributes of the thread.
func OnThread(f func() error) error {
	var thread errgroup.Group
	thread.Go(func() error {
		runtime.LockOSThread()
		return f()
	})

	return thread.Wait()
}

// As calls f with the access to files that another user has; files that f makes belong to that user and group.
// Only root may call it.
func As(uid, gid uint32, groups []uint32, f func() error) error {
	return OnThread(func() error {
		all := make([]int, len(groups))
		for i, group := range groups {
			all[i] = int(group)
		}
		// The functions of package syscall would change all threads.
		err := errors.Join(unix.Setgroups(all), unix.Setfsgid(int(gid)), unix.Setfsuid(int(uid)))
		// The two calls report a refusal only by the ids, which invalid numbers return unchanged.
		is, _ := unix.SetfsuidRetUid(-1)
		in, _ := unix.SetfsgidRetGid(-1)
		if err == nil && (uint32(is) != uid || uint32(in) != gid) {
			err = unix.EPERM
		}
		if err != nil {
			return fmt.Errorf("cannot become %s: %w", OwnerName(uid), err)
		}

		return f()
	})
}
