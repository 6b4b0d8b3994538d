package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

func regular(name, content string, mode int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), PAXRecords: map[string]string{"MUSTER.content": content}}
}

func directory(name string, mode int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}
}

func link(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
}

func hard(name, target string) tar.Header {
	return tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644}
}

// pack makes a tar of entries; the content of a regular one is in its records.
func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, header := range entries {
		content := header.PAXRecords["MUSTER.content"]
		header.PAXRecords = nil
		if header.Typeflag == tar.TypeXGlobalHeader {
			header.PAXRecords = map[string]string{"comment": "x"}
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

func zip(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	bundle := zip(t, pack(t,
		tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header"},
		directory("./", 0o777),
		regular("./manifest.yaml", "muster: {}\n", 0o644),
		regular("deep/er/file", "x", 0o4755),
		directory("deep/er", 0o2500),
		directory("readonly", 0o555),
		regular("readonly/file", "", 0o400),
		link("to-file", "manifest.yaml"),
		link("deep/up", "../manifest.yaml"),
		link("deep/er/top", "../.."),
		link("dangling", "deep/nothing"),
		hard("./again/file", "./deep/er/file"),
	))
	if err := archive.Unpack(t.Context(), bytes.NewReader(bundle), dir, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	tree := hosttest.Snapshot(t, dir)
	for name, want := range map[string]fs.FileMode{
		"manifest.yaml": 0o644, "deep": fs.ModeDir | 0o755, "deep/er": fs.ModeDir | 0o700, "deep/er/file": 0o755,
		"readonly": fs.ModeDir | 0o755, "readonly/file": 0o400, "again/file": 0o755,
	} {
		if got := tree[name].Mode; got != want {
			t.Errorf("%s has mode %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]string{"to-file": "manifest.yaml", "deep/up": "../manifest.yaml", "deep/er/top": "../..", "dangling": "deep/nothing"} {
		if got := tree[name].Target; got != want {
			t.Errorf("%s leads to %q, want %q", name, got, want)
		}
	}
	if content, err := os.ReadFile(filepath.Join(dir, "deep", "up")); err != nil || string(content) != "muster: {}\n" {
		t.Errorf("the content is %q: %v", content, err)
	}
	if len(tree) != 13 {
		t.Errorf("there are %d entries: %v", len(tree), tree)
	}
}

func TestUnpackRefuses(t *testing.T) {
	flood := strings.Repeat("x", 2000)
	cases := map[string]struct {
		entries []tar.Header
		is      error
	}{
		"an absolute name":          {[]tar.Header{regular("/abs", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a name that goes up":       {[]tar.Header{regular("../up", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a name with .. inside":     {[]tar.Header{regular("a/../b", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a directory that goes up":  {[]tar.Header{directory("../up", 0o755)}, archive.ErrUnsafeEntry},
		"an absolute link":          {[]tar.Header{link("l", "/etc/passwd")}, archive.ErrUnsafeEntry},
		"a link that goes up":       {[]tar.Header{link("l", "../out")}, archive.ErrUnsafeEntry},
		"a link to the parent":      {[]tar.Header{link("l", "..")}, archive.ErrUnsafeEntry},
		"a deep link that goes up":  {[]tar.Header{link("a/b/l", "../../../out")}, archive.ErrUnsafeEntry},
		"a link down and up":        {[]tar.Header{link("l", "a/../../out")}, archive.ErrUnsafeEntry},
		"a link through a link":     {[]tar.Header{link("a/b/top", "../.."), link("l", "a/b/top/../out")}, archive.ErrUnsafeEntry},
		"a link to nothing at all":  {[]tar.Header{link("l", "")}, archive.ErrUnsafeEntry},
		"a file through a link":     {[]tar.Header{directory("d", 0o755), link("l", "d"), regular("l/file", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a file below a link":       {[]tar.Header{directory("d/e", 0o755), link("l", "d"), regular("l/e/file", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a file below a file":       {[]tar.Header{regular("f", "x", 0o644), regular("f/file", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a file over a link":        {[]tar.Header{link("l", "other"), regular("l", "x", 0o644)}, archive.ErrUnsafeEntry},
		"a file twice":              {[]tar.Header{regular("f", "x", 0o644), regular("f", "y", 0o644)}, archive.ErrUnsafeEntry},
		"a link over a directory":   {[]tar.Header{directory("d", 0o755), link("d", "other")}, archive.ErrUnsafeEntry},
		"a directory over a link":   {[]tar.Header{link("l", "other"), directory("l", 0o755)}, archive.ErrUnsafeEntry},
		"a hard link up":            {[]tar.Header{hard("h", "../target/f")}, archive.ErrUnsafeEntry},
		"a hard link to a root":     {[]tar.Header{hard("h", "/etc/passwd")}, archive.ErrUnsafeEntry},
		"a hard link to nothing":    {[]tar.Header{hard("h", "f")}, archive.ErrUnsafeEntry},
		"a hard link to a link":     {[]tar.Header{regular("f", "x", 0o644), link("l", "f"), hard("h", "l")}, archive.ErrUnsafeEntry},
		"a hard link to a dir":      {[]tar.Header{directory("d", 0o755), hard("h", "d")}, archive.ErrUnsafeEntry},
		"a hard link through one":   {[]tar.Header{regular("d/f", "x", 0o644), link("l", "d"), hard("h", "l/f")}, archive.ErrUnsafeEntry},
		"a hard link over a file":   {[]tar.Header{regular("f", "x", 0o644), regular("g", "x", 0o644), hard("g", "f")}, archive.ErrUnsafeEntry},
		"a device":                  {[]tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}, archive.ErrEntryType},
		"a fifo":                    {[]tar.Header{{Typeflag: tar.TypeFifo, Name: "fifo"}}, archive.ErrEntryType},
		"more bytes than allowed":   {[]tar.Header{regular("a", flood[:600], 0o644), regular("b", flood[:600], 0o644)}, files.ErrTooLarge},
		"more entries than allowed": {[]tar.Header{directory("a", 0o755), directory("b", 0o755), directory("c", 0o755), directory("d", 0o755), directory("e", 0o755)}, archive.ErrTooManyEntries},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "target")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			err := archive.Unpack(t.Context(), bytes.NewReader(zip(t, pack(t, c.entries...))), dir, archive.Limits{Bytes: 1000, Entries: 4})
			if !errors.Is(err, c.is) {
				t.Errorf("the error is %v, want %v", err, c.is)
			}
			last := c.entries[len(c.entries)-1].Name
			if err == nil || !strings.Contains(err.Error(), last) && c.is != files.ErrTooLarge {
				t.Errorf("the error does not name %q: %v", last, err)
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
				t.Errorf("something is outside of the target: %v, %v", entries, err)
			}
		})
	}
}

func TestUnpackOfWhatIsNoArchive(t *testing.T) {
	good := zip(t, pack(t, regular("file", strings.Repeat("content", 1000), 0o644)))
	damaged := bytes.Clone(good)
	damaged[len(damaged)-6] ^= 1
	for name, content := range map[string][]byte{
		"nothing":          {},
		"text":             []byte("no archive at all"),
		"no tar inside":    zip(t, bytes.Repeat([]byte("no tar "), 1000)),
		"cut short":        good[:len(good)/2],
		"a wrong checksum": damaged,
	} {
		if err := archive.Unpack(t.Context(), bytes.NewReader(content), t.TempDir(), archive.Limits{}); !errors.Is(err, archive.ErrNotArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := archive.Unpack(t.Context(), bytes.NewReader(good), t.TempDir()+"/none", archive.Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no target: %v", err)
	}
	broken := errors.New("connection lost")
	source := io.MultiReader(bytes.NewReader(good[:len(good)/2]), iotest.ErrReader(broken))
	if err := archive.Unpack(t.Context(), source, t.TempDir(), archive.Limits{}); !errors.Is(err, broken) || errors.Is(err, archive.ErrNotArchive) {
		t.Errorf("a source that breaks: %v", err)
	}
	random := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(random)
	long := zip(t, pack(t, regular("file", string(random), 0o644)))
	half := bytes.NewReader(long[:len(long)/2])
	if err := archive.Unpack(t.Context(), half, t.TempDir(), archive.Limits{}); !errors.Is(err, archive.ErrNotArchive) {
		t.Errorf("cut short within a file: %v", err)
	}
	source = io.MultiReader(bytes.NewReader(long[:len(long)/2]), iotest.ErrReader(&fs.PathError{Op: "read", Path: "bundle", Err: broken}))
	if err := archive.Unpack(t.Context(), source, t.TempDir(), archive.Limits{}); !errors.Is(err, broken) || errors.Is(err, archive.ErrNotArchive) {
		t.Errorf("a source that breaks within a file: %v", err)
	}
	stopped := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if err := archive.Unpack(ctx, bytes.NewReader(good), t.TempDir(), archive.Limits{}); !errors.Is(err, stopped) {
		t.Errorf("a context that has ended: %v", err)
	}
}

func TestUnpackOfABomb(t *testing.T) {
	header := regular("bomb", "", 0o644)
	header.Size = 1 << 40
	var packed bytes.Buffer
	if err := tar.NewWriter(&packed).WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := io.Copy(w, io.MultiReader(&packed, io.LimitReader(zeros{}, 8<<20)))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = archive.Unpack(t.Context(), &zipped, dir, archive.Limits{Bytes: 1 << 20})
	if !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
	if size := hosttest.Snapshot(t, dir)["bomb"].Size; size > 1<<20+1 {
		t.Errorf("it wrote %d bytes", size)
	}
	padding := zip(t, append(pack(t, regular("f", "x", 0o644)), make([]byte, 4<<20)...))
	if err := archive.Unpack(t.Context(), bytes.NewReader(padding), t.TempDir(), archive.Limits{Bytes: 1 << 20}); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("padding without end: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)

	return len(b), nil
}

func FuzzUnpack(f *testing.F) {
	for _, entries := range [][]tar.Header{
		{regular("manifest.yaml", "muster: {}", 0o644), directory("d/", 0o755), regular("d/f", "x", 0o6777)},
		{link("l", "d/f"), regular("d/f", "x", 0o644)},
		{link("a/b/top", "../.."), link("l", "a/b/top/../out")},
		{regular("../up", "x", 0o644)},
		{directory("d", 0o755), link("l", "d"), regular("l/file", "x", 0o644)},
		{hard("h", "../secret")},
		{regular("f", "x", 0o600), link("l", "../secret"), hard("h", "f"), hard("i", "l")},
		{{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header"}},
	} {
		f.Add(pack(f, entries...))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "target")
		err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(parent, "secret"), []byte("kept"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		before := hosttest.Snapshot(t, parent)
		// Whatever the answer is, nothing may leave the target.
		_ = archive.Unpack(t.Context(), bytes.NewReader(zip(t, content)), dir, archive.Limits{Bytes: 1 << 16, Entries: 50})
		total := int64(0)
		for name, item := range hosttest.Snapshot(t, parent) {
			total += item.Size
			inside := name == "target" || strings.HasPrefix(name, "target/")
			if was, known := before[name]; !inside && (!known || was.Digest != item.Digest) {
				t.Errorf("%s was changed", name)
			}
			if item.Mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky|fs.ModeDevice|fs.ModeNamedPipe) != 0 {
				t.Errorf("%s has mode %v", name, item.Mode)
			}
			real, err := filepath.EvalSymlinks(filepath.Join(parent, name))
			if item.Target != "" && err == nil && real != dir && !strings.HasPrefix(real, dir+"/") {
				t.Errorf("%s leads to %s", name, real)
			}
		}
		if total > 1<<16+1+4 {
			t.Errorf("it holds %d bytes", total)
		}
	})
}

func TestUnpackTakesWhatTarMakes(t *testing.T) {
	h, source, dir := hosttest.New(t), hosttest.Populate(t), t.TempDir()
	err := errors.Join(
		os.Remove(filepath.Join(source, "fifo")),
		os.WriteFile(filepath.Join(source, strings.Repeat("long", 40)), []byte("x"), 0o644),
		os.Chtimes(source, time.Time{}, time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	result, err := h.Run(t.Context(), command.Command{Argv: []string{"tar", "-czf", dir + "/bundle.tar.gz", "."}, Dir: source})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("tar: %v %s", err, result.Stderr)
	}
	bundle, err := os.Open(dir + "/bundle.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer bundle.Close()
	target, err := h.TempDir("bundle")
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Unpack(t.Context(), bundle, target, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	want, got := hosttest.Snapshot(t, source), hosttest.Snapshot(t, target)
	for name := range want {
		if got[name].Digest != want[name].Digest || got[name].Target != want[name].Target {
			t.Errorf("%s is %+v, want %+v", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d entries, want %d", len(got), len(want))
	}
}
