package fleetcmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/hosttest"
)

const serverConfig = "authorization: {users: [\n  {user: admin, password: a}\n]}\n"

// newConfig writes a configuration to a directory that every user may read.
func newConfig(t *testing.T) string {
	t.Helper()
	top := t.TempDir()
	path := filepath.Join(top, "fleet", "nats.conf")
	for _, dir := range []string{filepath.Dir(top), top} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(serverConfig), 0o640)); err != nil {
		t.Fatal(err)
	}

	return path
}

// TestRightsOfTheServerFile has a user edit a file without the rights to do so.
func TestRightsOfTheServerFile(t *testing.T) {
	for name, take := range map[string]func(path string) error{
		"unreadable":             func(path string) error { return os.Chmod(path, 0o200) },
		"not writable":           func(path string) error { return os.Chmod(path, 0o400) },
		"directory not writable": func(path string) error { return os.Chmod(filepath.Dir(path), 0o555) },
		"directory closed":       func(path string) error { return os.Chmod(filepath.Dir(path), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := newConfig(t)
			if err := take(path); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
			hosttest.Powerless(t, func() {
				if f, err := openServerFile(path); !errors.Is(err, fs.ErrPermission) || !strings.Contains(inFlag("--add", err).Error(), "run the command as the owner") {
					t.Errorf("%v %v", f, err)
				}
			})
		})
	}
}

// TestDirectoryOfAnotherUser is refused: its owner could exchange the file.
func TestDirectoryOfAnotherUser(t *testing.T) {
	path := newConfig(t)
	give := func(dir string) error { return os.Chmod(dir, 0o777) }
	if uid, gid := hosttest.Ordinary(); os.Geteuid() == 0 {
		give = func(dir string) error { return os.Chown(dir, uid, gid) }
	}
	if err := give(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if f, err := openServerFile(path); err == nil || !strings.Contains(err.Error(), filepath.Dir(path)) || !strings.Contains(err.Error(), "or run the command as its owner") {
		t.Errorf("%v %v", f, err)
	}
}

// TestServerFileIsEditedByOne at a time, keeps its owner and mode, and is not overwritten after a
// change by an editor.
func TestServerFileIsEditedByOne(t *testing.T) {
	path := newConfig(t)
	// Every user may lock the directory, and keeps no owner from an edit.
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	f, err := openServerFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openServerFile(path); err == nil || !strings.Contains(err.Error(), "another process edits") {
		t.Errorf("a second one: %v", err)
	}
	users := []provision.NewUser{{Name: "web02", Include: "web02.conf"}}
	if users[0].Password, err = f.password(t.Context(), f.beside("web02.password")); err == nil {
		err = f.writeNew(t.Context(), f.beside("web02.conf"), []byte("permissions: {publish: \">\"}\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	edit, err := f.AddToServer(users)
	if err != nil {
		t.Fatal(err)
	}
	text := f.text
	f.text = nil
	if err := f.save(t.Context(), edit); err == nil || !strings.Contains(err.Error(), "changed: run the command again") {
		t.Errorf("a changed file: %v", err)
	}
	f.text = text
	if err := errors.Join(f.save(t.Context(), edit), f.close()); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"nats.conf": 0o640, "web02.conf": 0o640, "web02.password": 0o600} {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	text, err = os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), strings.TrimSuffix(serverConfig, "]}\n")) || !strings.HasSuffix(string(text), "]}\n") || !strings.Contains(string(text), "web02") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestFailedEditLeavesNothing beside the configuration.
func TestFailedEditLeavesNothing(t *testing.T) {
	path := newConfig(t)
	f, err := openServerFile(path)
	if err == nil {
		_, err = f.password(t.Context(), f.beside("web02.password"))
	}
	if err == nil {
		err = f.writeNew(t.Context(), f.beside("web02.conf"), nil)
	}
	if err == nil {
		err = f.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}
