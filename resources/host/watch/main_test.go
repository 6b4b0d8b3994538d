package watch_test

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"package manager": playManager})
}

// playManager holds a lock as package managers do, until its input ends.
func playManager() error {
	f, err := os.OpenFile(os.Args[1], os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		return err
	}
	actor.Ready()
	_, _ = io.Copy(io.Discard, os.Stdin)

	return f.Close()
}
