//go:build system

package rigs

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	release       = "bookworm"
	defaultMirror = "http://deb.debian.org/debian"
	// packages are what a machine that boots needs beyond the least.
	packages = "dbus,systemd,systemd-sysv"
	// name is the name of the root: each list of packages has a root.
	name = release + "-systemd"
)

// Checkout returns the root of the module that the test is part of.
func Checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("there is no go.mod above the working directory: %v", err)

	return ""
}

// Debian returns the directory of a minimal Debian with systemd, and makes it if needed. Machines never write
// to it.
func Debian(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("the rigs need root: run the tests with the tag system as root")
	}
	cache := filepath.Join(Checkout(t), ".rig")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	defer lock(t, filepath.Join(cache, name+".lock"))()
	root := filepath.Join(cache, name)
	if _, err := os.Stat(root); err == nil {
		return root
	}
	if err := bootstrap(t, root); err != nil {
		t.Fatal(err)
	}

	return root
}

// lock waits until no other test process makes the root.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}

	return func() { _ = f.Close() }
}

// bootstrap makes a root beside its name, and gives it the name when it is complete.
func bootstrap(t testing.TB, root string) error {
	t.Helper()
	part := root + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), "/usr/sbin/debootstrap", "--variant=minbase", "--include="+packages, release, part, mirror())
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatal("debootstrap is not installed: apt-get install debootstrap")
	}
	if err != nil {
		t.Logf("%s", out)
		return err
	}
	archives, err := filepath.Glob(filepath.Join(part, "var/cache/apt/archives/*.deb"))
	if err != nil {
		return err
	}
	for _, path := range archives {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	// An empty machine-id is filled in at boot.
	if err := os.WriteFile(filepath.Join(part, "etc/machine-id"), nil, 0o444); err != nil {
		return err
	}

	return os.Rename(part, root)
}

// mirror is where this machine's own packages come from.
func mirror() string {
	sources, err := os.Open("/etc/apt/sources.list.d/debian.sources")
	if err != nil {
		return defaultMirror
	}
	defer sources.Close()
	for lines := bufio.NewScanner(sources); lines.Scan(); {
		if _, uris, ok := strings.Cut(lines.Text(), "URIs:"); ok && len(strings.Fields(uris)) > 0 {
			return strings.Fields(uris)[0]
		}
	}

	return defaultMirror
}
