//go:build system

package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemStoreOfAnotherUser tests that root refuses a directory of another user, empty or with a session.
func TestSystemStoreOfAnotherUser(t *testing.T) {
	hosttest.NeedRoot(t)
	h, dir := host.New(host.Options{}), filepath.Join(t.TempDir(), "session")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	hosttest.Give(t, dir)
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chown root "+dir) {
			t.Error(err)
		}
	}
	_, err := engine.NewSession(t.Context(), h, dir)
	refused(err)
	if err := os.WriteFile(filepath.Join(dir, ".muster-session"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = engine.OpenSession(h, dir)
	refused(err)
}
