package watch_test

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/actor"
)

func TestMain(m *testing.M) {
	actor.Main(m, map[string]func() error{"package manager": playManager, "reader": playReader})
}

// playManager holds a lock as package managers do, until its input ends.
func playManager() error { return hold(os.O_RDWR|os.O_CREATE, unix.F_WRLCK) }

// playReader holds a lock that every reader of the lock file can take.
func playReader() error { return hold(os.O_RDONLY, unix.F_RDLCK) }

func hold(flags int, kind int16) error {
	f, err := os.OpenFile(os.Args[1], flags, 0o640)
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: kind}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
		return err
	}
	actor.Ready()
	_, _ = io.Copy(io.Discard, os.Stdin)

	return f.Close()
}
