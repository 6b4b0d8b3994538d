package host_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/paths"
)

// TestReadRecord has records of WriteRecord and others.
func TestReadRecord(t *testing.T) {
	type record struct{ A int }
	path := filepath.Join(t.TempDir(), "r.json")
	h := host.New(host.Options{StateDir: filepath.Dir(path)})
	if _, err := host.ReadRecord[record](path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing record gives %v", err)
	}
	if err := h.WriteRecord(context.Background(), path, record{7}); err != nil {
		t.Fatal(err)
	}
	if r, err := host.ReadRecord[record](path); err != nil || r.A != 7 {
		t.Errorf("read %+v, %v", r, err)
	}
	for text, mode := range map[string]fs.FileMode{`{"A":8`: 0o600, `{"A":"8"}`: 0o600, "": 0o644} {
		if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		if r, err := host.ReadRecord[record](path); !errors.Is(err, host.ErrDamaged) || r.A != 0 {
			t.Errorf("%q gives %+v, %v", text, r, err)
		}
	}
	if err := os.Truncate(path, 65<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := host.ReadRecord[record](path); !errors.Is(err, host.ErrDamaged) {
		t.Errorf("a huge record gives %v", err)
	}
	if err := errors.Join(os.WriteFile(path, []byte(`{"A":9}`), 0o600), os.Chmod(path, 0o620)); err != nil {
		t.Fatal(err)
	}
	if _, err := host.ReadRecord[record](path); !errors.Is(err, paths.ErrUntrusted) {
		t.Errorf("a record that a group may write gives %v", err)
	}
}

// TestExpectUnitChangeFails checks that a change is refused as long as its record cannot be written.
func TestExpectUnitChangeFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "units"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := host.New(host.Options{StateDir: dir})
	for range 2 {
		if err := h.ExpectUnitChange(t.Context(), "run"); err == nil {
			t.Error("no error")
		}
	}
	if err := host.New(host.Options{}).ExpectUnitChange(t.Context(), "run"); err != nil {
		t.Errorf("without a state directory: %v", err)
	}
}
