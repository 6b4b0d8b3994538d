package pkgtest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
	"golang.org/x/sys/unix"
)

// Locks is a package manager that waits for the locks of others.
type Locks struct {
	// Hold lists the ways in which another process holds the lock.
	Hold map[string]func(t testing.TB) (release func())
	// Clean resets the machine.
	Clean func(t testing.TB, env resource.Env)
	// Do runs a command that needs the lock, with this timeout.
	Do func(ctx context.Context, env resource.Env, timeout time.Duration) error
	// Done says whether it was done.
	Done func(t testing.TB, env resource.Env) bool
	// Says is part of the message about the process that holds the lock.
	Says string
}

// Lock holds a lock as another process would, until it is released.
func Lock(path string) func(t testing.TB) (release func()) {
	return func(t testing.TB) func() {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })

		return func() { _ = f.Close() }
	}
}

// recorded is a log that signals its first line.
type recorded struct {
	mu    sync.Mutex
	text  bytes.Buffer
	first func()
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text.Len() == 0 {
		r.first()
	}

	return r.text.Write(b)
}

// Test checks that the lock of another process is waited for, with one message,
// that the wait ends, and that a time-out ends it too.
func (l Locks) Test(t *testing.T) {
	for name, hold := range l.Hold {
		t.Run(name, func(t *testing.T) {
			env := Env(t)
			l.Clean(t, env)
			log := &recorded{first: hold(t)}
			env.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if err := l.Do(t.Context(), env, time.Minute); err != nil || !l.Done(t, env) {
				t.Fatalf("it was not done, the error is %v", err)
			}
			if text := log.text.String(); strings.Count(text, "waiting for another process that changes packages") != 1 || !strings.Contains(text, l.Says) {
				t.Errorf("the log says %q", text)
			}
		})
		t.Run(name+", too long", func(t *testing.T) {
			env := Env(t)
			l.Clean(t, env)
			hold(t)
			err := l.Do(t.Context(), env, time.Second)
			if !errors.Is(err, pkg.ErrLocked) || !strings.Contains(err.Error(), l.Says) || !strings.Contains(err.Error(), "still after 1s") {
				t.Errorf("the error is %v", err)
			}
			if l.Done(t, env) {
				t.Error("it was done")
			}
		})
		t.Run(name+", a time-out", func(t *testing.T) {
			env := Env(t)
			l.Clean(t, env)
			hold(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			log := &recorded{first: func() { cancel(errors.New("timed out after 1s")) }} // once it waits
			env.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if err := l.Do(ctx, env, time.Minute); err == nil || !strings.Contains(err.Error(), "waiting for another process that changes packages: timed out after 1s") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
