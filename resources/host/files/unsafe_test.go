package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// everybodys returns a directory that everybody may write to, with a directory
// in it that everybody may exchange, and a file in that.
func everybodys(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	hosttest.MakeTree(t, dir, "dir/", "dir/file", "dir/sub/", "dir/sub/x", "file")

	return dir
}

// TestUnsafePathsAreRefused covers everything that a disk does by path.
func TestUnsafePathsAreRefused(t *testing.T) {
	h, dir := hosttest.New(t).Disk, everybodys(t)
	attrs := hosttest.Attrs(t, 0o600)
	file, sub := dir+"/dir/file", dir+"/dir/sub"
	before := hosttest.Snapshot(t, dir)
	for what, f := range map[string]func() error{
		"Look":                  func() error { _, err := h.Look(file); return err },
		"Follow":                func() error { _, err := h.Follow(file); return err },
		"Digest":                func() error { _, err := h.Digest(t.Context(), file); return err },
		"Read":                  func() error { _, err := files.Read(file, 100); return err },
		"Open":                  func() error { _, err := files.Open(file); return err },
		"Write":                 func() error { return h.Write(t.Context(), file, strings.NewReader("new"), attrs) },
		"WriteRecord":           func() error { return h.WriteRecord(t.Context(), sub+"/record", 1) },
		"SetAttrs":              func() error { return h.SetAttrs(file, attrs) },
		"MakeDirectory":         func() error { return h.MakeDirectory(sub+"/new", attrs) },
		"MakeDirectory, parent": func() error { return h.MakeDirectory(dir+"/new/deep", attrs) },
		"Remove":                func() error { return h.Remove(file) },
		"RemoveAll":             func() error { return h.RemoveAll(t.Context(), sub) },
		"IsEmpty":               func() error { _, err := files.IsEmpty(sub); return err },
		"MayWrite":              func() error { return h.MayWrite(sub) },
	} {
		if err := f(); !errors.Is(err, paths.ErrUnsafe) {
			t.Errorf("%s: %v", what, err)
		}
	}
	after := hosttest.Snapshot(t, dir)
	// The time of the directory itself shows that a directory came and went.
	delete(before, ".")
	delete(after, ".")
	if diff := hosttest.SnapshotDiff(before, after); len(diff) > 0 {
		t.Errorf("something was changed: %q", diff)
	}
}

// TestLastElementOfAnUnsafeDirectory works in a directory that everybody may
// write to, where only the last element could be exchanged: it is not followed.
func TestLastElementOfAnUnsafeDirectory(t *testing.T) {
	h, dir := hosttest.New(t).Disk, everybodys(t)
	for _, mode := range []os.FileMode{0o644, 0o604} {
		if err := h.Write(t.Context(), dir+"/new", strings.NewReader("x"), hosttest.Attrs(t, mode)); err != nil {
			t.Error(err)
		}
		if text, err := files.Read(dir+"/new", 100); err != nil || string(text) != "x" {
			t.Errorf("mode %o: %q, %v", mode, text, err)
		}
	}
	if err := h.MakeDirectory(dir+"/made", hosttest.Attrs(t, 0o700)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.RemoveAll(t.Context(), dir+"/dir"), h.Remove(dir+"/made")); err != nil {
		t.Error(err)
	}
}

// TestMovedIntoADirectoryOfEverybody has a file and a directory that not everybody
// may read where everybody could have moved them: they are compared, replaced and
// removed, and neither shown nor given away.
func TestMovedIntoADirectoryOfEverybody(t *testing.T) {
	h, dir := hosttest.New(t).Disk, everybodys(t)
	path, private := dir+"/moved", dir+"/private"
	if err := errors.Join(os.WriteFile(path, []byte("secret"), 0o640), os.Mkdir(private, 0o700)); err != nil {
		t.Fatal(err)
	}
	entry, err := h.Look(path)
	if err != nil {
		t.Fatal(err)
	}
	stranger := files.Attrs{UID: uint32(os.Geteuid()) + 1, GID: uint32(os.Getegid()), Mode: 0o600}
	_, read := files.Read(path, 100)
	_, opened := files.Open(path)
	_, digest := h.Digest(t.Context(), path)
	for what, err := range map[string]error{
		"Foreign": entry.Foreign(), "Read": read, "Open": opened, "Digest": digest,
		"owner": h.SetAttrs(path, stranger), "mode": h.SetAttrs(path, hosttest.Attrs(t, 0o644)),
		"owner of a directory": h.SetAttrs(private, stranger), "mode of a directory": h.MakeDirectory(private, hosttest.Attrs(t, 0o755)),
	} {
		if !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), "but everybody may write to "+dir+": take the right to write from others, or set the sticky bit of "+dir) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "secret" {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := h.Compare(t.Context(), entry); err != nil {
		t.Errorf("to compare: %v", err)
	}
	if err := errors.Join(h.SetAttrs(path, hosttest.Attrs(t, 0o600)), h.Write(t.Context(), path, strings.NewReader("new"), hosttest.Attrs(t, 0o600)), h.Remove(path)); err != nil {
		t.Error(err)
	}
}

// TestHardLinks covers links that any user can add to a foreign file.
func TestHardLinks(t *testing.T) {
	h, dir := hosttest.New(t).Disk, everybodys(t)
	secret, path := filepath.Join(filepath.Dir(dir), "secret"), dir+"/hard"
	if err := errors.Join(os.WriteFile(secret, []byte("secret"), 0o600), os.Link(secret, path)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"mode":  h.SetAttrs(path, hosttest.Attrs(t, 0o644)),
		"owner": h.SetAttrs(path, files.Attrs{UID: uint32(os.Geteuid()) + 1, GID: uint32(os.Getegid()), Mode: 0o600}),
	} {
		if !errors.Is(err, files.ErrLinks) || !strings.Contains(err.Error(), path+" has several names") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := h.SetAttrs(path, hosttest.Attrs(t, 0o600)); err != nil {
		t.Errorf("the same: %v", err)
	}
	if text, err := files.Read(path, 100); !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), "everybody may write to "+dir) {
		t.Errorf("it was read: %q, %v", text, err)
	}
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if text, err := files.Read(path, 100); !errors.Is(err, paths.ErrUnsafe) {
		t.Errorf("it was read in a directory like /tmp: %q, %v", text, err)
	}
	if text, err := files.Read(secret, 100); err != nil || string(text) != "secret" {
		t.Errorf("by its other name: %q, %v", text, err)
	}
	if entry, err := h.Look(secret); err != nil || entry.Mode != 0o600 || entry.Links != 2 {
		t.Errorf("%+v, %v", entry, err)
	}
}

// TestReplaced reads the observed file, not a replacement.
func TestReplaced(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"a file": func(p string) error { return os.WriteFile(p, []byte("other"), 0o600) },
		"a link": func(p string) error { return os.Symlink("old", p) },
		"a fifo": func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		h, dir := hosttest.New(t).Disk, t.TempDir()
		hosttest.MakeTree(t, dir, "file", "target", "link -> file")
		for _, look := range []func() (files.Entry, error){
			func() (files.Entry, error) { return h.Look(dir + "/file") },
			func() (files.Entry, error) { return h.Follow(dir + "/link") },
		} {
			entry, err := look()
			if err != nil || entry.Kind != files.File {
				t.Fatal(entry, err)
			}
			if text, err := entry.Read(100); err != nil || string(text) == "" {
				t.Errorf("%s: as it was: %q, %v", name, text, err)
			}
			if err := errors.Join(os.Rename(dir+"/file", dir+"/old"), replace(dir+"/file")); err != nil {
				t.Fatal(err)
			}
			// The link leads on to the file that was looked at.
			refused := name != "a link" || entry.Path != dir+"/link"
			if _, err := entry.Open(); errors.Is(err, files.ErrReplaced) != refused {
				t.Errorf("%s at %s: opened, %v", name, entry.Path, err)
			}
			if digest, err := h.DigestEntry(t.Context(), entry); errors.Is(err, files.ErrReplaced) != refused {
				t.Errorf("%s at %s: %q, %v", name, entry.Path, digest, err)
			}
			if err := errors.Join(os.Remove(dir+"/file"), os.Rename(dir+"/old", dir+"/file")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDirectoryInPlaceOfAnother writes into a directory right after its replacement.
func TestDirectoryInPlaceOfAnother(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	for i := range 100 {
		hosttest.MakeTree(t, dir, "d/")
		if err := h.Write(t.Context(), dir+"/d/x", strings.NewReader("x"), hosttest.Attrs(t, 0o600)); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
		if entry, err := h.Look(dir + "/d/x"); err != nil || entry.Kind != files.File {
			t.Fatalf("after %d: %+v, %v", i, entry, err)
		}
		if err := os.Rename(dir+"/d", dir+"/old"); err != nil {
			t.Fatal(err)
		}
		if entry, err := h.Look(dir + "/d/x"); err != nil || entry.Kind != files.Absent {
			t.Fatalf("after %d: %+v, %v", i, entry, err)
		}
		if err := os.RemoveAll(dir + "/old"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLitterOfAnUnsafePath finds a recorded directory behind a link that any user may have made: it removes
// nothing there and drops the record.
func TestLitterOfAnUnsafePath(t *testing.T) {
	dir, state := everybodys(t), filepath.Join(t.TempDir(), "state")
	temp := dir + "/dir/.muster-" + strings.Repeat("A", 26)
	if err := errors.Join(os.WriteFile(temp, nil, 0o600), os.Mkdir(state, 0o700), os.WriteFile(state+"/litter", []byte("\""+dir+"/dir\"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	h := files.New(files.Options{StateDir: state, Log: hosttest.Log(t)})
	begin(t, h, files.RunOptions{})
	end(t, h)
	if _, err := os.Stat(temp); err != nil {
		t.Errorf("it was removed: %v", err)
	}
	if _, err := os.Stat(state + "/litter"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still recorded: %v", err)
	}
}
