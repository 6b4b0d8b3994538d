//go:build system

package writers_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/writers"
	"github.com/musterfleet/muster/testing/actor"
	"github.com/musterfleet/muster/testing/hosttest"
)

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-late:
			t.Fatal("still not: " + what)
		case <-time.After(time.Millisecond):
		}
	}
}

// awaitWriter waits until the latest writer is a process that fanotify has reported.
func awaitWriter(t *testing.T, l *writers.Listener, a *actor.Actor) (seen []writers.Writer) {
	t.Helper()
	await(t, "seen", func() bool {
		seen = l.Found()
		return len(seen) > 0 && seen[0].How == writers.Fanotify && seen[0].PID == a.PID()
	})

	return seen
}

// TestSystemSeenByFanotify finds only the process that changed a file, in any way, even after it closed the
// file.
func TestSystemSeenByFanotify(t *testing.T) {
	hosttest.NeedRoot(t)
	for _, dir := range []string{t.TempDir(), hosttest.MountTmpfs(t, "", 0)} {
		path := filepath.Join(dir, "motd")
		for _, name := range []string{path, dir + "/other"} {
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, what := range []string{"write", "replace", "change mode", "remove"} {
			l := listen(t, dir+"/missing", path)
			if err := os.Chmod(path, 0o644); err != nil { // by this process
				t.Fatal(err)
			}
			actor.Play(t, "writer", "write", dir+"/other")
			a := actor.Play(t, "writer", what, path)
			seen := awaitWriter(t, l, a)
			if len(seen) != 1 || seen[0] != of(t, a, path, writers.Fanotify, seen[0].Unit) {
				t.Errorf("%s in %s: %+v", what, dir, seen)
			}
			l.Close()
			if seen[0].String() != l.Found()[0].String() {
				t.Error("what was seen is gone when it is closed")
			}
		}
	}
}

// TestSystemLatestFirst: two processes write in turn, one of them always a new process.
func TestSystemLatestFirst(t *testing.T) {
	hosttest.NeedRoot(t)
	path := made(t, "motd")
	l := listen(t, path)
	for range 3 {
		a := actor.Play(t, "writer", "write", path)
		awaitWriter(t, l, a)
		other := actor.Play(t, "writer", "write as another", path)
		seen := awaitWriter(t, l, other)
		if len(seen) != 2 || seen[1].PID != a.PID() {
			t.Errorf("seen %v", seen)
		}
	}
}

// TestSystemClosed leaves neither a descriptor nor a goroutine, whether it is
// closed or its context ends.
func TestSystemClosed(t *testing.T) {
	hosttest.NeedRoot(t)
	path := made(t, "motd")
	before, goroutines := descriptors(t), runtime.NumGoroutine()
	for _, closed := range []bool{true, false} {
		ctx, end := context.WithCancel(t.Context())
		l, err := writers.Listen(ctx, []string{path})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			a := actor.Play(t, "writer", "write", path)
			awaitWriter(t, l, a)
			a.Kill()
		}
		if closed {
			l.Close()
		}
		end()
		await(t, "all descriptors are closed", func() bool { return descriptors(t) <= before })
		await(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
		l.Close()
	}
}

// descriptors counts descriptors of fanotify and of processes.
func descriptors(t *testing.T) (count int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.Contains(link, "fanotify") || strings.Contains(link, "pidfd") {
			count++
		}
	}

	return count
}

// TestSystemListenIsNotLedElsewhere: another user redirects the path to a directory of root, whose writers
// would be blamed.
func TestSystemListenIsNotLedElsewhere(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	if err := os.Symlink("/etc", home+"/app"); err != nil {
		t.Fatal(err)
	}
	hosttest.Give(t, home+"/app")
	if _, err := writers.Listen(t.Context(), []string{home + "/app/passwd"}); !errors.Is(err, paths.ErrUnsafe) {
		t.Errorf("it listens there: %v", err)
	}
}
