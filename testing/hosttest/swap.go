package hosttest

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// Stranger is the number of a user and group that own what Foreign makes.
const Stranger = 54321

// Foreign returns a new directory that belongs to Stranger, below directories
// that everybody may enter. Only root can make it.
func Foreign(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "stranger")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	Give(t, home)

	return home
}

// Give gives paths to Stranger, links themselves and not where they lead.
func Give(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.Lchown(path, Stranger, Stranger); err != nil {
			t.Fatal(err)
		}
	}
}

// Swap exchanges two existing paths in a loop, as the owner of their directory can. The first exchange
// precedes its return; the returned function or the end of the test stops it. The function returns the number
// of exchanges.
func Swap(t testing.TB, a, b string) (stop func() int) {
	t.Helper()
	var ended atomic.Bool
	begun := make(chan struct{})
	var swaps int
	var wg sync.WaitGroup
	wg.Go(func() {
		for tries := 0; !ended.Load(); tries++ {
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				swaps++
			}
			if tries == 0 {
				close(begun)
			}
		}
	})
	stop = func() int {
		ended.Store(true)
		wg.Wait()
		return swaps
	}
	t.Cleanup(func() { stop() })
	<-begun

	return stop
}
