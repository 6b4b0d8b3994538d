package access

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// recheck is the minimum interval of checks for changes.
const recheck = time.Second

// reloaded holds a value from files, and reads it again after a change. If that fails, it keeps the old value and logs
// the error once.
type reloaded[T any] struct {
	paths []string
	read  func() (T, error)
	log   *slog.Logger

	mu    sync.Mutex
	value T
	stamp string
	next  time.Time
}

// load reads the files for the first time.
func load[T any](log *slog.Logger, read func() (T, error), paths ...string) (*reloaded[T], error) {
	r := &reloaded[T]{paths: paths, read: read, log: log}
	r.stamp = r.stat()
	value, err := read()
	r.value = value

	return r, err
}

// get returns the value.
func (r *reloaded[T]) get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.next) {
		return r.value
	}
	r.next = now.Add(recheck)
	stamp := r.stat()
	if stamp == r.stamp {
		return r.value
	}
	r.stamp = stamp
	value, err := r.read()
	if err != nil {
		r.log.Error("a changed file cannot be used, what was read before still holds", "error", err)
		return r.value
	}
	r.log.Info("a changed file was read again", "files", strings.Join(r.paths, ", "))
	r.value = value

	return r.value
}

// stat returns a text that changes with the files. A replacement may have the same size and time.
func (r *reloaded[T]) stat() string {
	var out strings.Builder
	for _, path := range r.paths {
		var at unix.Stat_t
		if err := unix.Stat(path, &at); err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		fmt.Fprintln(&out, at.Dev, at.Ino, at.Size, at.Mode, at.Uid, at.Mtim, at.Ctim)
	}

	return out.String()
}
