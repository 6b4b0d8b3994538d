// Package hosttest helps tests that change the node through package host: a host for the test, an owner that
// every user may use, and snapshots that show changes.
package hosttest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// New returns a host with a state directory for the test, and logs to the test's output.
func New(t testing.TB) *host.Host {
	t.Helper()

	return host.New(host.Options{StateDir: filepath.Join(t.TempDir(), "state"), Log: Log(t)})
}

// Traced returns a host as New does, and what gives the commands that it has
// started since it was last asked, each with its arguments.
func Traced(t testing.TB) (h *host.Host, commands func() []string) {
	t.Helper()
	var mu sync.Mutex
	var started []string
	h = host.New(host.Options{StateDir: filepath.Join(t.TempDir(), "state"), Log: Log(t), OnStart: func(argv []string) {
		mu.Lock()
		defer mu.Unlock()
		started = append(started, strings.Join(argv, " "))
	}})

	return h, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := started
		started = nil
		return out
	}
}

// Owner returns the numbers of the user and group of this process as values of the properties owner and
// group. Every user can set them on new files.
func Owner(t testing.TB) (user, group string) {
	t.Helper()

	return strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
}

// Attrs are the attributes of Owner with a mode.
func Attrs(t testing.TB, mode os.FileMode) files.Attrs {
	t.Helper()

	return files.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: mode}
}
