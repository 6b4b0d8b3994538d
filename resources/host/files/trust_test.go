package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// writable are the modes that permit writes by others.
func writable() map[fs.FileMode]string {
	return map[fs.FileMode]string{0o664: "0664", 0o646: "0646", 0o666: "0666"}
}

func TestReadTrusted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if _, err := files.ReadTrusted(path, 100, paths.Author{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for mode, text := range writable() {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := files.ReadTrusted(path, 100, paths.Author{})
		if !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "mode "+text) || !strings.Contains(err.Error(), "chmod go-w "+path) {
			t.Errorf("mode %s: %v", text, err)
		}
	}
	for _, mode := range []fs.FileMode{0o644, 0o600, 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got, err := files.ReadTrusted(path, 100, paths.Author{}); err != nil || string(got) != "text" {
			t.Errorf("mode %o: %q, %v", mode, got, err)
		}
	}
	if _, err := files.ReadTrusted(path, 3, paths.Author{}); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("a long file: %v", err)
	}
}

// TestOpenStateOfOthers has a state directory that others may write to.
func TestOpenStateOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	disk := files.New(files.Options{StateDir: dir})
	for mode := range writable() {
		if err := os.Chmod(dir, mode|0o111); err != nil {
			t.Fatal(err)
		}
		for _, write := range []bool{false, true} {
			if err := disk.OpenState(write); !errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "chmod go-w "+dir) {
				t.Errorf("mode %o, write %t: %v", mode, write, err)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("mode %o: %v was written: %v", mode, entries, err)
		}
	}
	if err := errors.Join(os.Chmod(dir, 0o755), disk.OpenState(true)); err != nil {
		t.Error(err)
	}
}
