package archive_test

import (
	pkzip "archive/zip"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/files"
)

func TestPrepareZip(t *testing.T) {
	before := syscall.Umask(0o027)
	defer syscall.Umask(before)
	dir := t.TempDir()
	h, path := files.New(files.Options{StateDir: filepath.Join(dir, "state")}), filepath.Join(dir, "a.zip")
	for name, c := range map[string]struct {
		members []member
		want    []fs.FileMode
	}{
		"nothing to take away": {[]member{{name: "d/", mode: fs.ModeDir | 0o750}, {name: "f", content: "x", mode: 0o640}}, nil},
		"no entries":           {nil, nil},
		"no modes":             {[]member{{name: "f", change: func(h *pkzip.FileHeader) { h.ExternalAttrs = 0x20 }}}, nil},
		"some": {
			[]member{{name: "d/", mode: fs.ModeDir | fs.ModeSticky | 0o777}, {name: "f", content: "x", mode: 0o666}, {name: "s", mode: fs.ModeSetuid | fs.ModeSetgid | 0o711}, {name: "good", mode: 0o600}},
			[]fs.FileMode{fs.ModeDir | 0o750, 0o640, 0o710, 0o600},
		},
	} {
		content := packZip(t, c.members...)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		prepared, remove, err := archive.PrepareZip(t.Context(), h, path, false)
		if err != nil || (prepared == path) != (c.want == nil) {
			t.Fatalf("%s: %s, %v", name, prepared, err)
		}
		got, err := pkzip.OpenReader(prepared)
		if err != nil {
			t.Fatal(err)
		}
		for i, mode := range c.want {
			if entry := got.File[i]; entry.Name != c.members[i].name || entry.Mode() != mode {
				t.Errorf("%s: %s has mode %v, not %v", name, entry.Name, entry.Mode(), mode)
			}
		}
		if len(got.File) != len(c.members) {
			t.Errorf("%s: there are %d entries", name, len(got.File))
		}
		if err := errors.Join(got.Close(), remove()); err != nil {
			t.Fatal(err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
			t.Errorf("%s: the zip itself was changed: %v", name, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "state", "tmp", "*")); len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

// TestPrepareZipOfOtherSystems has names that unzip takes for those of another alphabet.
func TestPrepareZipOfOtherSystems(t *testing.T) {
	before := syscall.Umask(0o022)
	defer syscall.Umask(before)
	dos := func(attrs uint32) func(*pkzip.FileHeader) {
		return func(h *pkzip.FileHeader) { h.CreatorVersion, h.ExternalAttrs = 0, attrs }
	}
	members := []member{
		{name: "ascii", change: dos(0x20)}, {name: "ä", change: dos(0x20)}, {name: "ö", change: dos(0x21)}, {name: "ü/", change: dos(0)}, {name: "ß", change: dos(0o100666<<16 | 0x20)},
		{name: "é", mode: fs.ModeSetuid | 0o700},
	}
	dir := t.TempDir()
	h, path := files.New(files.Options{StateDir: filepath.Join(dir, "state")}), filepath.Join(dir, "a.zip")
	if err := os.WriteFile(path, packZip(t, members...), 0o600); err != nil {
		t.Fatal(err)
	}
	for preserve, want := range map[bool][]fs.FileMode{
		false: {0o666, 0o644, 0o444, fs.ModeDir | 0o755, 0o644, 0o700},
		true:  {0o666, 0o644, 0o444, fs.ModeDir | 0o755, 0o666, fs.ModeSetuid | 0o700},
	} {
		prepared, remove, err := archive.PrepareZip(t.Context(), h, path, preserve)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pkzip.OpenReader(prepared)
		if err != nil {
			t.Fatal(err)
		}
		for i, entry := range got.File {
			if system := entry.CreatorVersion >> 8; entry.Name != members[i].name || entry.Mode() != want[i] || (system == 3) != (i > 0) {
				t.Errorf("preserve %t: %s has mode %v, not %v, from system %d", preserve, entry.Name, entry.Mode(), want[i], system)
			}
		}
		if err := errors.Join(got.Close(), remove()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPrepareZipFails(t *testing.T) {
	dir := t.TempDir()
	h, path := files.New(files.Options{StateDir: filepath.Join(dir, "state")}), filepath.Join(dir, "a.zip")
	if _, _, err := archive.PrepareZip(t.Context(), h, path, false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no zip: %v", err)
	}
	good := packZip(t, member{name: "f", content: "x", mode: fs.ModeSetuid | 0o755})
	central, end := bytes.LastIndex(good, []byte("PK\x01\x02")), bytes.LastIndex(good, []byte("PK\x05\x06"))
	for name, content := range map[string][]byte{
		"no zip at all": []byte("text"),
		"a directory that is cut short": append(append(bytes.Clone(good[:central]), good[central:central+10]...),
			bytesAt(good[end:], 12, 10, 0, 0, 0)...),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := archive.PrepareZip(t.Context(), h, path, false); !errors.Is(err, archive.ErrNotArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, _, err := archive.PrepareZip(ctx, h, path, false); !errors.Is(err, stopped) {
		t.Errorf("a context that has ended: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "state", "tmp", "*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if _, _, err := archive.PrepareZip(t.Context(), files.New(files.Options{}), path, false); !errors.Is(err, files.ErrNoStateDir) {
		t.Errorf("no place for a copy: %v", err)
	}
}
