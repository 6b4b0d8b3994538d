package hosttest

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user without rights, for tests that run as root.
const nobody = 65534

// Ordinary returns the numbers of the user and group with which Powerless accesses files: those of this
// process, or of nobody for root.
func Ordinary() (uid, gid int) {
	if uid := os.Geteuid(); uid != 0 {
		return uid, os.Getegid()
	}

	return nobody, nobody
}

// Powerless calls f with no more rights to files than Ordinary has. What f
// starts in another goroutine has them all.
func Powerless(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, so no other goroutine runs as this user.
		runtime.LockOSThread()
		err := unix.Setfsgid(nobody)
		if err == nil {
			err = unix.Setfsuid(nobody)
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
