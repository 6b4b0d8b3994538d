package files

import (
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
