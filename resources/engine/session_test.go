package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/paths"
)

// TestStoreThatOthersMayWrite tests that a directory that other users may write to is refused, empty or with a session.
func TestStoreThatOthersMayWrite(t *testing.T) {
	h, dir := host.New(host.Options{}), filepath.Join(t.TempDir(), "session")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	refused := func(err error) {
		t.Helper()
		if !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chmod go-w "+dir) {
			t.Error(err)
		}
	}
	for _, mode := range []os.FileMode{0o770, 0o707, 0o777, 0o777 | os.ModeSticky} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		_, err := engine.NewSession(t.Context(), h, dir)
		refused(err)
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("mode %o: %v was written: %v", mode, entries, err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := engine.NewSession(t.Context(), h, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), &model.Transaction{EventID: ksuid.New().String()}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.OpenSession(h, dir); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o775); err != nil {
		t.Fatal(err)
	}
	_, err = engine.OpenSession(h, dir)
	refused(err)
}
