package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestSetAttrs(t *testing.T) {
	cases := map[string]struct {
		make func(path string) error
		want uint32
		is   error
	}{
		"a file":                      {make: func(p string) error { return os.WriteFile(p, nil, 0o600) }, want: 0o751},
		"a file that nobody can read": {make: func(p string) error { return os.WriteFile(p, nil, 0) }, want: 0o751},
		"a setuid file": {make: func(p string) error {
			return errors.Join(os.WriteFile(p, nil, 0o755), os.Chmod(p, 0o751|fs.ModeSetuid|fs.ModeSticky))
		}, want: 0o751},
		"a directory": {make: func(p string) error { return os.Mkdir(p, 0o700) }, want: 0o751},
		"a directory with special bits": {make: func(p string) error {
			return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o700|fs.ModeSetgid|fs.ModeSticky))
		}, want: 0o3751},
		"a link":  {make: func(p string) error { return os.Symlink("target", p) }, is: files.ErrLink},
		"a fifo":  {make: func(p string) error { return syscall.Mkfifo(p, 0o600) }, is: files.ErrNotRegular},
		"nothing": {make: func(string) error { return nil }, is: fs.ErrNotExist},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, dir := hosttest.New(t).Disk, t.TempDir()
			path, target := filepath.Join(dir, "path"), filepath.Join(dir, "target")
			if err := errors.Join(os.WriteFile(target, []byte("x"), 0o600), c.make(path)); err != nil {
				t.Fatal(err)
			}
			before := hosttest.Snapshot(t, dir)
			err := h.SetAttrs(path, hosttest.Attrs(t, 0o751))
			if c.is != nil {
				if !errors.Is(err, c.is) {
					t.Errorf("the error is %v, want %v", err, c.is)
				}
				if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)); len(diff) > 0 {
					t.Errorf("something was changed: %v", diff)
				}
				return
			}
			entry, lookErr := h.Look(path)
			if err := errors.Join(err, lookErr); err != nil || entry.Mode != c.want {
				t.Errorf("the mode is %o, want %o: %v", entry.Mode, c.want, err)
			}
		})
	}
}

func TestMakeDirectory(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	h, dir := hosttest.New(t).Disk, t.TempDir()
	path := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := h.MakeDirectory(path, hosttest.Attrs(t, 0o750)); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]uint32{"a": 0o755, "a/b": 0o755, "a/b/c": 0o750} {
			entry, err := h.Look(filepath.Join(dir, name))
			if err != nil || entry.Kind != files.Directory || entry.Mode != want || entry.UID != uint32(os.Geteuid()) {
				t.Errorf("%s is %+v, want mode %o: %v", name, entry, want, err)
			}
		}
	}
	if err := h.MakeDirectory(path, hosttest.Attrs(t, 0o711)); err != nil {
		t.Fatal(err)
	}
	if entry, err := h.Look(path); err != nil || entry.Mode != 0o711 {
		t.Errorf("the mode of an existing directory is %o: %v", entry.Mode, err)
	}
}

func TestMakeDirectoryKeepsSpecialBits(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	if err := os.Chmod(dir, 0o755|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "new")
	if err := h.MakeDirectory(path, hosttest.Attrs(t, 0o755)); err != nil {
		t.Fatal(err)
	}
	if entry, err := h.Look(path); err != nil || entry.Mode != 0o2755 {
		t.Errorf("the mode is %o, want the setgid of the parent kept: %v", entry.Mode, err)
	}
}

func TestMakeDirectoryErrors(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o644),
		os.Mkdir(filepath.Join(dir, "real"), 0o700),
		os.Symlink("real", filepath.Join(dir, "link")),
		os.Symlink("nothing", filepath.Join(dir, "dangling")))
	if err != nil {
		t.Fatal(err)
	}
	for path, c := range map[string]struct {
		is   error
		says string
	}{
		"file":       {files.ErrNotDirectory, "file exists and is not a directory"},
		"file/a":     {files.ErrNoParent, "file is not a directory"},
		"file/a/b":   {files.ErrNoParent, "file is not a directory"},
		"link":       {files.ErrLink, "link is a symbolic link"},
		"dangling":   {files.ErrLink, "dangling is a symbolic link"},
		"dangling/a": {files.ErrLink, "dangling is a symbolic link"},
	} {
		err := h.MakeDirectory(filepath.Join(dir, path), hosttest.Attrs(t, 0o755))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
	if err := h.MakeDirectory("/", hosttest.Attrs(t, 0o755)); !errors.Is(err, files.ErrRefused) {
		t.Errorf("/: the error is %v", err)
	}
	if entry, err := h.Look(filepath.Join(dir, "real")); err != nil || entry.Mode != 0o700 {
		t.Errorf("the target of the link has mode %o: %v", entry.Mode, err)
	}
	if err := h.MakeDirectory(filepath.Join(dir, "link", "below"), hosttest.Attrs(t, 0o755)); err != nil {
		t.Errorf("below a link to a directory: %v", err)
	}
}

// A directory that cannot be given away is not left behind, nor are its parents.
func TestMakeDirectoryLeavesNothingBehind(t *testing.T) {
	for _, path := range []string{"made", "a/b/made", "there/made"} {
		h, dir := hosttest.New(t).Disk, t.TempDir()
		there := filepath.Join(dir, "there")
		uid, gid := hosttest.Ordinary()
		err := errors.Join(os.Mkdir(there, 0o700), os.Chown(there, uid, gid), os.Chown(dir, uid, gid), os.Chmod(filepath.Dir(dir), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		hosttest.Powerless(t, func() { err = h.MakeDirectory(filepath.Join(dir, path), files.Attrs{UID: 1, GID: 1, Mode: 0o755}) })
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "could not set owner") {
			t.Errorf("%s: the error is %v", path, err)
		}
		if tree := hosttest.Snapshot(t, dir); len(tree) != 2 || tree["there"].UID != uint32(uid) {
			t.Errorf("%s: there is %+v", path, tree)
		}
	}
}

// TestOnlyRootGivesFilesAway holds for every user, in one way or the other.
func TestOnlyRootGivesFilesAway(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	uid := uint32(os.Geteuid())
	other := files.Attrs{UID: uid + 1, GID: uint32(os.Getegid()), Mode: 0o640}
	for name, change := range map[string]func() error{
		"Write":         func() error { return h.Write(t.Context(), path, strings.NewReader("new"), other) },
		"SetAttrs":      func() error { return h.SetAttrs(path, other) },
		"MakeDirectory": func() error { return h.MakeDirectory(filepath.Join(dir, "made"), other) },
	} {
		err := change()
		if uid == 0 && err != nil {
			t.Errorf("%s as root: %v", name, err)
		}
		if uid != 0 && (!errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "could not set owner")) {
			t.Errorf("%s as another user: %v", name, err)
		}
	}
	want, left := uid, 2
	if uid == 0 {
		want, left = other.UID, 3
	}
	tree := hosttest.Snapshot(t, dir)
	if len(tree) != left || tree["file"].UID != want || (uid == 0 && tree["made"].UID != want) {
		t.Errorf("afterwards there is %+v", tree)
	}
}
