package scaffold

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// The limits of one rendering.
const (
	// maxMemory is what it may take beyond what the process has at its start.
	maxMemory = 1 << 30
	// maxBytes is how much its files may hold, each and together.
	maxBytes = 128 << 20
	// maxFiles is how many files there may be.
	maxFiles = 100_000
	// maxStack is far more than templates need that end.
	maxStack = 16 << 20
)

// contain limits this process; the system ends it when it exceeds a limit.
func contain() error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory / 4 * 3)
	// Where memory is scarce this process ends first. Not every system allows that.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var pages uint64
	size, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(size), &pages)
	}

	var now unix.Rlimit
	if err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_AS, &now)); err != nil {
		return err
	}
	most := min(pages*uint64(os.Getpagesize())+maxMemory, now.Max)

	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
}
