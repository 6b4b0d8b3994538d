//go:build system

package chaos

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/hosttest"
)

// TestChaosOfRoot breaks what only root can break, in rounds.
func TestChaosOfRoot(t *testing.T) {
	hosttest.NeedRoot(t)
	t.Parallel()
	inRounds(t, []fault{
		{name: "disk full", run: diskFull},
		{name: "ten watches", run: tenWatches},
	})
}

// diskFull fills the disk of the state directory, or of the files as well.
func diskFull(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := prepare(t, r, 10, srv.URL(), store)
	if err := os.Mkdir(w.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("muster", w.state, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.agent.kill()
		if err := unix.Unmount(w.state, 0); err != nil {
			t.Error(err)
		}
	})
	w.put()
	w.startAgent()
	w.judge()
	w.usual = judge{w}.open()
	w.pardons.dropped = true // no report has room
	w.during(func() {
		w.pass(300 * time.Millisecond)
		full := filepath.Join(w.state, "full")
		fill(t, full)
		w.pass(time.Second)
		if err := os.Remove(full); err != nil {
			t.Fatal(err)
		}
		w.pass(300 * time.Millisecond)
	})
	w.judge()
	w.agent.terminate()
}

// fill writes a file as long as there is room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 4096; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
}

// tenWatches runs the agent in a user namespace with a limit of ten inotify watches. The agent polls its
// other files every few seconds.
func tenWatches(t *testing.T, r *rand.Rand) {
	srv, store := inProcess(t)
	w := prepare(t, r, 40, srv.URL(), store)
	// Each file has a separate directory.
	w.spread()
	w.attr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{Size: 1}}, GidMappings: []syscall.SysProcIDMap{{Size: 1}},
	}
	w.watches = 10
	w.put()
	w.startAgent()
	w.judge()
	w.usual = judge{w}.open()
	w.during(func() { w.pass(time.Second) })
	w.judge()
	w.end()
}

// spread puts each file in a separate directory.
func (w *world) spread() {
	w.t.Helper()
	var dirs []string
	for i, path := range w.files {
		dir, name := filepath.Split(path)
		dirs = append(dirs, filepath.Join(dir, "of"+name))
		w.files[i] = filepath.Join(dirs[i], name)
		if err := os.Mkdir(dirs[i], 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			w.t.Fatal(err)
		}
	}
	w.history = watchHistory(w.t, dirs...)
}
