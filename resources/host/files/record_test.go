package files_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

// A record is written even if the run is interrupted, and only its owner may read it.
func TestWriteRecord(t *testing.T) {
	h := hosttest.New(t).Disk
	path := filepath.Join(t.TempDir(), "records", "a.json")
	ended, end := context.WithCancel(t.Context())
	end()
	for _, owed := range []string{"one", "two"} {
		if err := h.WriteRecord(ended, path, map[string]string{"owed": owed}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != `{"owed":"two"}` {
		t.Errorf("it holds %s, %v", text, err)
	}
	for at, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
		if info, err := os.Stat(at); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	if err := h.WriteRecord(t.Context(), path, func() {}); err == nil {
		t.Error("what cannot be JSON was written")
	}
}
