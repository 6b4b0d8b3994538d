package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSettled(t *testing.T) {
	began := time.Unix(1000, 500_000_000)
	for name, c := range map[string]struct {
		ctime unix.Timespec
		want  bool
	}{
		"long ago":                   {unix.Timespec{Sec: 900, Nsec: 1}, true},
		"just over a tick":           {unix.Timespec{Sec: 1000, Nsec: 479_999_999}, true},
		"within a tick":              {unix.Timespec{Sec: 1000, Nsec: 480_000_001}, false},
		"while it was read":          {unix.Timespec{Sec: 1000, Nsec: 600_000_000}, false},
		"in the future":              {unix.Timespec{Sec: 2000, Nsec: 1}, false},
		"whole seconds, last one":    {unix.Timespec{Sec: 999}, false},
		"whole seconds, before that": {unix.Timespec{Sec: 998}, true},
	} {
		if got := settled(&unix.Stat_t{Ctim: c.ctime}, began); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestDigestCacheKnowsWhatMakesAFileAnother(t *testing.T) {
	st := unix.Stat_t{Dev: 1, Ino: 2, Mode: unix.S_IFREG, Size: 3, Mtim: unix.Timespec{Sec: 4}, Ctim: unix.Timespec{Sec: 5}}
	var cache digestCache
	cache.put(&st, "digest")
	for name, change := range map[string]func(*unix.Stat_t){
		"device":    func(s *unix.Stat_t) { s.Dev++ },
		"inode":     func(s *unix.Stat_t) { s.Ino++ },
		"size":      func(s *unix.Stat_t) { s.Size++ },
		"mtime":     func(s *unix.Stat_t) { s.Mtim.Nsec++ },
		"ctime":     func(s *unix.Stat_t) { s.Ctim.Nsec++ },
		"directory": func(s *unix.Stat_t) { s.Mode = unix.S_IFDIR },
	} {
		other := st
		change(&other)
		if _, ok := cache.get(entryOf("", &other)); ok {
			t.Errorf("another %s: the digest is taken", name)
		}
	}
	if digest, ok := cache.get(entryOf("", &st)); !ok || digest != "digest" {
		t.Errorf("the same file: %q, %v", digest, ok)
	}
	cache.forget()
	if _, ok := cache.get(entryOf("", &st)); ok {
		t.Error("a forgotten digest is taken")
	}
}

func TestDigestCacheIsBounded(t *testing.T) {
	var cache digestCache
	for i := range maxDigests + 10 {
		cache.put(&unix.Stat_t{Ino: uint64(i), Mode: unix.S_IFREG}, "digest")
	}
	if len(cache.entries) != maxDigests {
		t.Errorf("it holds %d, want %d", len(cache.entries), maxDigests)
	}
}

// TestDigestIsRememberedUntilARunReadsAll puts a wrong digest where the right
// one is remembered: only what reads the file gives the right one.
func TestDigestIsRememberedUntilARunReadsAll(t *testing.T) {
	h := New(Options{})
	const path = "/proc/self/exe"
	entry, err := h.Follow(path)
	if err != nil {
		t.Fatal(err)
	}
	right, err := h.Digest(t.Context(), path)
	if err != nil || len(right) != 64 {
		t.Fatalf("%q, %v", right, err)
	}
	h.digests.mu.Lock()
	h.digests.entries = map[fileID]digestEntry{entry.id: {stamp: entry.stamp, digest: "remembered"}}
	h.digests.mu.Unlock()
	for _, digest := range []func() (string, error){
		func() (string, error) { return h.Digest(t.Context(), path) },
		func() (string, error) { return h.DigestEntry(t.Context(), entry) },
	} {
		if got, err := digest(); got != "remembered" {
			t.Errorf("it was read again: %q, %v", got, err)
		}
	}
	for _, c := range []struct {
		all  bool
		want string
	}{{false, "remembered"}, {true, right}} {
		if err := h.BeginRun(t.Context(), RunOptions{ReadAll: c.all}); err != nil {
			t.Fatal(err)
		}
		if got, err := h.Digest(t.Context(), path); got != c.want {
			t.Errorf("read all %v: %q, %v", c.all, got, err)
		}
		if err := h.EndRun(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDigestEndsAtTheSizeThatWasSeen has a file that is a thousand times larger by
// the time it is read.
func TestDigestEndsAtTheSizeThatWasSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := New(Options{})
	seen, err := d.Look(path)
	if err = errors.Join(err, os.Truncate(path, 1<<40)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if digest, _, err := d.Compare(ctx, seen); err != nil || digest != abc {
		t.Errorf("%q, %v", digest, err)
	}
	// A partly read file is not cached.
	if err := os.Truncate(path, 4); err != nil {
		t.Fatal(err)
	}
	if digest, err := d.Digest(ctx, path); err != nil || digest == abc {
		t.Errorf("afterwards: %q, %v", digest, err)
	}
}

// TestDigestOfTooMuchWithoutASize has more in a file without a size than is read of
// one: it is not taken for all of it.
func TestDigestOfTooMuchWithoutASize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := New(Options{})
	seen, err := d.Look(path)
	if err = errors.Join(err, os.Truncate(path, maxUnsized)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Compare(t.Context(), seen); err != nil {
		t.Errorf("as much as is read: %v", err)
	}
	if err := os.Truncate(path, maxUnsized+1); err != nil {
		t.Fatal(err)
	}
	if digest, _, err := d.Compare(t.Context(), seen); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), path) {
		t.Errorf("more: %q, %v", digest, err)
	}
}

// growing is a context that makes a file larger each time it is asked.
type growing struct {
	context.Context
	file  *os.File
	size  int64
	asked int
}

func (g *growing) Err() error {
	if g.asked++; g.asked == 1 || g.asked > 10 {
		return nil
	}
	g.size += copyChunk

	return g.file.Truncate(g.size)
}

// TestCopyEndsAtTheSizeThatWasSeen has a source that grows while it is copied.
func TestCopyEndsAtTheSizeThatWasSeen(t *testing.T) {
	dir := t.TempDir()
	source, err := os.Create(filepath.Join(dir, "source"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	const size = copyChunk + 1
	ctx := &growing{Context: context.Background(), file: source, size: size}
	if err := source.Truncate(size); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy")
	if err := New(Options{}).Write(ctx, path, source, OwnAttrs(0o600)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size || ctx.asked < 2 {
		t.Errorf("%d bytes of %d, asked %d times: %v", info.Size(), size, ctx.asked, err)
	}
}

// TestFilesWithoutSizeAreReadToTheirEnd has one of the kernel's.
func TestFilesWithoutSizeAreReadToTheirEnd(t *testing.T) {
	const kernels = "/proc/sys/kernel/ostype"
	want := fmt.Sprintf("%x", sha256.Sum256([]byte("Linux\n")))
	d := New(Options{})
	if digest, err := d.Digest(t.Context(), kernels); err != nil || digest != want {
		t.Errorf("%s, %v", digest, err)
	}
	source, err := os.Open(kernels)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	path := filepath.Join(t.TempDir(), "copy")
	if err := d.Write(t.Context(), path, source, OwnAttrs(0o600)); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "Linux\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestCompareReturnsWhatItHasJustRead where that is short.
func TestCompareReturnsWhatItHasJustRead(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), New(Options{})
	for name, size := range map[string]int{"empty": 0, "short": 3, "longest": maxText, "long": maxText + 1} {
		path, content := filepath.Join(dir, name), strings.Repeat("x", size)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		entry, err := d.Look(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(content))
		digest, text, err := d.Compare(t.Context(), entry)
		if err != nil || digest != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %q, %v", name, digest, err)
		}
		if short := size <= maxText; short != (text != nil) || short && *text != content {
			t.Errorf("%s: its text is %v", name, text)
		}
	}
}
