//go:build system

package archive_test

import (
	"archive/tar"
	pkzip "archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestSystemUnpackOntoAFullFileSystem(t *testing.T) {
	hosttest.NeedRoot(t)
	dir := hosttest.MountTmpfs(t, "size=1m", 0)
	content := pack(t, regular("big", strings.Repeat("x", 2<<20), 0o644))
	if err := archive.Unpack(t.Context(), bytes.NewReader(zip(t, content)), dir, archive.Limits{}); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, archive.ErrNotArchive) {
		t.Errorf("a bundle: %v", err)
	}
	if err := extractInto(t, dir, content, archive.Tar, false); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, archive.ErrNotArchive) {
		t.Errorf("an archive: %v", err)
	}
}

// TestSystemExtractSaysWhatIsFull, or read-only, and where.
func TestSystemExtractSaysWhatIsFull(t *testing.T) {
	hosttest.NeedRoot(t)
	content := pack(t, directory("app", 0o755), regular("app/data", strings.Repeat("x", 2<<20), 0o644))
	full, fixed := hosttest.MountTmpfs(t, "size=1m", 0), hosttest.MountTmpfs(t, "size=1m", syscall.MS_RDONLY)
	for target, want := range map[string]string{
		full + "/opt/a":    `could not extract: "app/data": write ` + full + "/opt/a/app/data: no space left on device: the file system at " + full + " is full, or has too many files: make room there",
		full:               `could not extract: "app/data": write ` + full + "/app/data: no space left on device: the file system at " + full + " is full, or has too many files: make room there",
		fixed:              `could not extract: "app": mkdirat ` + fixed + "/app: read-only file system: mount " + fixed + " writable; if it was, the kernel's log says why it no longer is",
		fixed + "/missing": "mkdir " + fixed + "/missing: read-only file system: mount " + fixed + " writable; if it was, the kernel's log says why it no longer is",
	} {
		if err := extractInto(t, target, content, archive.Tar, false); err == nil || err.Error() != want {
			t.Errorf("the error is\n%v, not\n%s", err, want)
		}
		if err := os.RemoveAll(full + "/app"); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(full + "/opt"); err != nil {
			t.Fatal(err)
		}
	}
}

// furnish creates the initial contents of a target.
func furnish(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	old := time.Unix(1, 0)
	err := errors.Join(os.Mkdir(at("there"), 0o751), os.WriteFile(at("there/old"), []byte("old"), 0o600), os.WriteFile(at("there/kept"), []byte("kept"), 0o600),
		os.Symlink("old", at("there/link")), os.Mkdir(at("real"), 0o755), os.Symlink("real", at("in")), os.Chtimes(at("there/old"), old, old), os.Chmod(dir, 0o755))
	if err != nil {
		t.Fatal(err)
	}

	return dir
}

// sameAs compares what a program and Extract leave of an archive in a target.
func sameAs(t *testing.T, content []byte, format archive.Format, preserve bool, argv func(archive, target string) []string) {
	t.Helper()
	ours, theirs, path := furnish(t), furnish(t), filepath.Join(t.TempDir(), "archive")
	if err := extractInto(t, ours, content, format, preserve); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	result, err := command.New(nil).Run(t.Context(), command.Command{Argv: argv(path, theirs)})
	if err != nil || result.ExitCode != 0 {
		t.Fatal(err, result.Stdout, result.Stderr)
	}
	for _, line := range hosttest.SnapshotDiff(hosttest.Snapshot(t, theirs), hosttest.Snapshot(t, ours)) {
		if !strings.Contains(line, ": time was ") {
			t.Errorf("preserve %t: %s", preserve, line)
		}
	}
	err = filepath.WalkDir(theirs, func(name string, _ fs.DirEntry, _ error) error {
		there, err := os.Lstat(name)
		if err != nil {
			return err
		}
		here, err := os.Lstat(filepath.Join(ours, strings.TrimPrefix(name, theirs)))
		if err != nil {
			return err
		}
		// Only a time of the archive is of the past.
		if past := there.ModTime().Before(time.Now().Add(-time.Hour)); past != here.ModTime().Before(time.Now().Add(-time.Hour)) || past && !there.ModTime().Equal(here.ModTime()) {
			t.Errorf("preserve %t: %s is of %v, not %v", preserve, name, here.ModTime(), there.ModTime())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSystemExtractLeavesWhatTarLeaves has everything that an archive may hold.
func TestSystemExtractLeavesWhatTarLeaves(t *testing.T) {
	entries := dated(
		directory("./", 0o755), regular("there/old", "new", 0o640), regular("there/link", "new", 0o644), directory("there", 0o700), regular("in/through", "x", 0o666),
		directory("made", 0o2775), regular("made/deep/er/file", "x", 0o4755), directory("made/deep", 0o1777), link("made/l", "deep/er/file"), hard("made/h", "made/deep/er/file"),
		directory("fixed", 0o555), regular("fixed/file", "x", 0o400), regular("twice", "1", 0o600), regular("twice", "2", 0o644), link("dangling", "nothing"), regular(strings.Repeat("long/", 50)+"name", "x", 0o644))
	for i := range entries {
		entries[i].ModTime = entries[i].ModTime.Add(time.Duration(i) * time.Minute)
		entries[i].Uid, entries[i].Gid = os.Geteuid(), os.Getegid()
	}
	content := pack(t, entries...)
	sameAs(t, content, archive.Tar, false, func(archive, target string) []string {
		return []string{"tar", "-xf", archive, "-C", target, "--no-same-owner", "--no-same-permissions", "--no-overwrite-dir"}
	})
	sameAs(t, content, archive.Tar, true, func(archive, target string) []string {
		return []string{"tar", "-xf", archive, "-C", target, "--same-owner", "--same-permissions"}
	})
	sameAs(t, zip(t, content), archive.TarGz, false, func(archive, target string) []string {
		return []string{"tar", "-xzf", archive, "-C", target, "--no-same-owner", "--no-same-permissions", "--no-overwrite-dir"}
	})
	packed := pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "fine", Mode: 0o644, ModTime: day.Add(123456789), Format: tar.FormatPAX})
	sameAs(t, packed, archive.Tar, false, func(archive, target string) []string { return []string{"tar", "-xf", archive, "-C", target} })
}

// TestSystemExtractLeavesWhatUnzipLeaves is the same for zips, with modes that no
// umask changes: unzip has none.
func TestSystemExtractLeavesWhatUnzipLeaves(t *testing.T) {
	at := func(minutes int) func(*pkzip.FileHeader) {
		return func(h *pkzip.FileHeader) { h.Modified = day.Add(time.Duration(minutes) * time.Minute) }
	}
	members := []member{
		{"there/old", "new", 0o640, at(1)}, {"there/link", "new", 0o644, at(2)}, {"there/", "", fs.ModeDir | 0o700, at(3)}, {"in/", "", fs.ModeDir | 0o700, at(4)}, {"in/through", "x", 0o644, at(5)},
		{"made/", "", fs.ModeDir | 0o755, at(6)}, {"made/deep/er/file", "x", 0o755, at(7)}, {"made/l", "deep/er/file", fs.ModeSymlink | 0o777, at(8)},
		{"fixed/", "", fs.ModeDir | 0o555, at(9)}, {"fixed/file", "x", 0o400, at(10)}, {"ä", "x", 0o600, at(11)}, {"dangling", "nothing", fs.ModeSymlink | 0o777, at(12)},
	}
	for _, preserve := range []bool{false, true} {
		sameAs(t, packZip(t, members...), archive.Zip, preserve, func(archive, target string) []string {
			argv := []string{"unzip", "-o", "-d", target, archive}
			if preserve {
				argv = []string{"unzip", "-o", "-K", "-X", "-d", target, archive}
			}
			return argv
		})
	}
}
