package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestWritePutsAFileInPlaceOf(t *testing.T) {
	cases := map[string]func(path string) error{
		"nothing":         func(string) error { return nil },
		"a file":          func(p string) error { return os.WriteFile(p, []byte("old content that is longer"), 0o777) },
		"a link":          func(p string) error { return os.Symlink("other", p) },
		"a dangling link": func(p string) error { return os.Symlink("nothing", p) },
		"a fifo":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"a hard link":     func(p string) error { return os.Link(filepath.Join(filepath.Dir(p), "other"), p) },
		"a setuid file": func(p string) error {
			return errors.Join(os.WriteFile(p, nil, 0o755), os.Chmod(p, 0o755|fs.ModeSetuid))
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			h, dir := hosttest.New(t).Disk, t.TempDir()
			path, other := filepath.Join(dir, "file"), filepath.Join(dir, "other")
			if err := errors.Join(os.WriteFile(other, []byte("untouched"), 0o600), prepare(path)); err != nil {
				t.Fatal(err)
			}
			if err := h.Write(t.Context(), path, strings.NewReader("new\r\n\x00"), hosttest.Attrs(t, 0o640)); err != nil {
				t.Fatal(err)
			}
			tree := hosttest.Snapshot(t, dir)
			if item := tree["file"]; item.Mode != 0o640 || item.UID != uint32(os.Geteuid()) || item.GID != uint32(os.Getegid()) {
				t.Errorf("the file is %+v", item)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != "new\r\n\x00" {
				t.Errorf("the content is %q, %v", content, err)
			}
			if content, err := os.ReadFile(other); err != nil || string(content) != "untouched" {
				t.Errorf("the other file holds %q, %v", content, err)
			}
			if len(tree) != 3 {
				t.Errorf("something was left behind: %v", tree)
			}
		})
	}
}

// TestReplacedFilesAreClosed tests that no replaced file stays open.
func TestReplacedFilesAreClosed(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	var writing sync.WaitGroup
	for i := range 4 {
		writing.Go(func() {
			for range 50 {
				if err := h.Write(t.Context(), filepath.Join(dir, strconv.Itoa(i)), strings.NewReader("x"), hosttest.Attrs(t, 0o644)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("%s is still open", target)
		}
	}
}

func TestWriteModeIsExactWhateverTheUmask(t *testing.T) {
	before := syscall.Umask(0o077)
	defer syscall.Umask(before)
	h, dir := hosttest.New(t).Disk, t.TempDir()
	for _, mode := range []fs.FileMode{0, 0o400, 0o666, 0o777} {
		path := filepath.Join(dir, mode.String())
		if err := h.Write(t.Context(), path, strings.NewReader(""), hosttest.Attrs(t, mode)); err != nil {
			t.Fatal(err)
		}
		if entry, err := h.Look(path); err != nil || entry.Mode != uint32(mode) {
			t.Errorf("the mode is %o, want %o: %v", entry.Mode, mode, err)
		}
	}
}

func TestWriteThroughALinkedParent(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "run"), 0o755), os.Symlink("run", filepath.Join(dir, "var"))); err != nil {
		t.Fatal(err)
	}
	if err := h.Write(t.Context(), filepath.Join(dir, "var", "file"), strings.NewReader("x"), hosttest.Attrs(t, 0o644)); err != nil {
		t.Fatal(err)
	}
	if entry, err := h.Look(filepath.Join(dir, "run", "file")); err != nil || entry.Kind != files.File {
		t.Errorf("the file is %v: %v", entry.Kind, err)
	}
}

// failing is content that cannot be read to its end.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWriteErrorsLeaveEverythingAsItWas(t *testing.T) {
	broken := errors.New("broken source")
	stopped := errors.New("timed out after 30s")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	cases := map[string]struct {
		ctx     context.Context
		path    string
		content io.Reader
		is      error
		says    string
	}{
		"parent is missing":      {path: "no/file", is: files.ErrNoParent, says: "no is not a directory"},
		"parent is a file":       {path: "old/file", is: files.ErrNoParent, says: "old is not a directory"},
		"parent leads nowhere":   {path: "dangling/file", is: files.ErrNoParent, says: "dangling is not a directory"},
		"directory in its place": {path: "dir", is: syscall.EISDIR, says: "could not rename temporary file"},
		"no name":                {path: "..", is: files.ErrRefused},
		"name too long":          {path: strings.Repeat("n", 300), is: syscall.ENAMETOOLONG, says: "could not rename temporary file"},
		"content fails":          {path: "old", content: failing{broken}, is: broken, says: "could not write temporary file"},
		"content fails late":     {path: "old", content: io.MultiReader(bytes.NewReader(make([]byte, 20<<20)), failing{broken}), is: broken},
		"context has ended":      {ctx: cancelled, path: "old", is: stopped, says: "timed out after 30s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, dir := hosttest.New(t).Disk, t.TempDir()
			err := errors.Join(
				os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o604),
				os.Mkdir(filepath.Join(dir, "dir"), 0o755),
				os.Symlink("nothing", filepath.Join(dir, "dangling")))
			if err != nil {
				t.Fatal(err)
			}
			before := hosttest.Snapshot(t, dir)
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			repeats := c.content == nil
			if repeats {
				c.content = strings.NewReader("new")
			}
			path := dir + "/" + c.path
			if c.path == ".." {
				path = ".."
			}
			err = h.Write(c.ctx, path, c.content, hosttest.Attrs(t, 0o644))
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
			if repeats { // as at the next run, which reports only news
				if again := h.Write(c.ctx, path, strings.NewReader("new"), hosttest.Attrs(t, 0o644)); again == nil || again.Error() != err.Error() {
					t.Errorf("the same error again is %v, was %v", again, err)
				}
			}
			after := hosttest.Snapshot(t, dir)
			for _, tree := range []hosttest.Tree{before, after} {
				// The time of the directory itself shows that a temporary file came and went.
				delete(tree, ".")
			}
			if diff := hosttest.SnapshotDiff(before, after); len(diff) > 0 {
				t.Errorf("something was changed: %v", diff)
			}
		})
	}
}

func TestWriteWhereNothingCanBeMade(t *testing.T) {
	err := hosttest.New(t).Disk.Write(t.Context(), "/proc/self/muster", strings.NewReader(""), hosttest.Attrs(t, 0o644))
	if err == nil || !strings.Contains(err.Error(), "could not create temporary file") {
		t.Errorf("the error is %v", err)
	}
}

// endless gives bytes that differ by their place, up to a number of them, by Read only.
type endless struct{ at, end int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.at == e.end {
		return 0, io.EOF
	}
	n := min(int64(len(b)), e.end-e.at)
	for i := range b[:n] {
		b[i] = byte((e.at + int64(i)) % 251)
	}
	e.at += n

	return int(n), nil
}

func TestWriteOfManySizesFromEverySource(t *testing.T) {
	h, dir := hosttest.New(t).Disk, t.TempDir()
	for _, size := range []int64{0, 1, 128 << 10, 8<<20 - 1, 8 << 20, 8<<20 + 1} {
		want, err := io.ReadAll(&endless{end: size})
		if err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(dir, "source")
		if err := os.WriteFile(source, want, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(source)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]io.Reader{"a stream": &endless{end: size}, "a file": file, "memory": bytes.NewReader(want)} {
			path := filepath.Join(dir, "target")
			if err := h.Write(t.Context(), path, content, hosttest.Attrs(t, 0o600)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes from %s: other content (%d bytes), %v", size, name, len(got), err)
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWriteAndDigestNeedConstantMemory(t *testing.T) {
	h, path := hosttest.New(t).Disk, filepath.Join(t.TempDir(), "file")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := h.Write(t.Context(), path, &endless{end: 64 << 20}, hosttest.Attrs(t, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Digest(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("64 MiB took %d bytes of memory", used)
	}
}
