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

const (
	// quiet is how long nothing has run when memory is given back: what runs again within
	// this time would only get it back.
	quiet = 10 * time.Second
	// settle is how long what stirs an idle agent may take.
	settle = 100 * time.Millisecond
	// thrift is how many times as long as giving memory back took the agent is idle until it
	// does that again.
	thrift = 1000
)

// Keep calls reduce 10 s after its start, and 10 s after the latest notification of busy,
// until ctx ends. Until busy is notified, it does so 100 ms after each notification of stirred
// as well, as far as that takes no more than a 1000th of the time, and else calls trim.
// Nothing else wakes it.
func Keep(ctx context.Context, busy, stirred tasks.Signal, reduce, trim func()) {
	for ctx.Err() == nil {
		for tasks.Pause(ctx, quiet, busy) {
		}
		for resting := true; resting && ctx.Err() == nil; {
			began := time.Now()
			reduce()
			resting = rest(ctx, busy, stirred, time.Now().Add(thrift*time.Since(began)), trim)
		}
	}
}

// rest trims after what stirs the agent, until that happens after a time. It is false when
// busy is notified before, or ctx ends.
func rest(ctx context.Context, busy, stirred tasks.Signal, until time.Time, trim func()) bool {
	for {
		select {
		case <-busy:
			return false
		case <-ctx.Done():
			return false
		case <-stirred:
		}
		if tasks.Pause(ctx, settle, busy) || ctx.Err() != nil {
			return false
		}
		if !time.Now().Before(until) {
			return true
		}
		trim()
	}
}

// Reduce collects garbage, gives the free part of the heap back, and trims: before that too,
// because collecting uses pages of its own. The errors are those of Trim.
func Reduce() error {
	before := Trim()
	debug.FreeOSMemory()

	return errors.Join(before, Trim())
}

// Trim takes the unmodified pages of this program out of its memory. They stay in the cache
// of the kernel, as long as it has room, and come back when they are used. Errors are those of
// reading /proc/self, and of the kernel, and nothing is lost with them.
func Trim() error {
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
