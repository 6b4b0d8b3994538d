// Package footprint gives memory back that an idle agent does not need: the free part of
// the heap, and the pages of the program that were last used long ago.
package footprint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/agent/tasks"
)

// quiet is how long nothing has run when memory is given back: what runs again within
// this time would only get it back.
const quiet = 10 * time.Second

// Keep calls reduce 10 s after its start, and 10 s after the latest notification of busy,
// until ctx ends. Nothing else wakes it.
func Keep(ctx context.Context, busy tasks.Signal, reduce func()) {
	for ctx.Err() == nil {
		for tasks.Pause(ctx, quiet, busy) {
		}
		if ctx.Err() != nil {
			return
		}
		reduce()
		select {
		case <-busy:
		case <-ctx.Done():
		}
	}
}

// Reduce gives the free part of the heap back, and takes the unmodified pages of this
// program out of its memory. They stay in the cache of the kernel, as long as it
// has room, and come back when they are used. Errors are those of reading
// /proc/self, and of the kernel, and nothing is lost with them.
func Reduce() error {
	debug.FreeOSMemory()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var failed []error
	for _, m := range reloadable(string(mappings), program) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED); errno != 0 {
			failed = append(failed, fmt.Errorf("madvise: %w", errno))
		}
	}

	return errors.Join(failed...)
}
