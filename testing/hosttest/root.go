package hosttest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// NeedRoot fails what cannot be tested as another user.
func NeedRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("tests with -tags system need root")
	}
}

// MountTmpfs mounts a tmpfs at a new directory.
func MountTmpfs(t *testing.T, options string, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("muster", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if flags != 0 {
		if err := syscall.Mount("muster", dir, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
			t.Fatal(err)
		}
	}

	return dir
}

// Mount binds a file or directory to another path, or mounts a tmpfs with a file in it
// where from is empty. The test unmounts it at its end.
func Mount(t *testing.T, from, at string) {
	t.Helper()
	fs, flags := "", uintptr(syscall.MS_BIND)
	if from == "" {
		from, fs, flags = "muster", "tmpfs", 0
	}
	if err := syscall.Mount(from, at, fs, flags, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Unmount(t, at) })
	if fs != "" {
		MakeTree(t, at, "precious")
	}
}

// Unmount unmounts a path, even a busy one.
func Unmount(t *testing.T, at string) {
	t.Helper()
	if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
		t.Error(err)
	}
}
