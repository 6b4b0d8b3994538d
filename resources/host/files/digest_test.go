package files_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestDigestSeesEveryChange changes a file in place, with the same size, faster
// than the clock of the file system may tick.
func TestDigestSeesEveryChange(t *testing.T) {
	h, path := hosttest.New(t).Disk, filepath.Join(t.TempDir(), "file")
	for i := range 500 {
		content := fmt.Appendf(nil, "content %03d", i)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := h.Digest(t.Context(), path)
			if want := fmt.Sprintf("%x", sha256.Sum256(content)); err != nil || got != want {
				t.Fatalf("change %d: %s, want %s: %v", i, got, want, err)
			}
		}
	}
}

// TestDigestSeesChangesOfMappedMemory changes a file through mapped memory, which does not change its times. Others may
// write to the file.
func TestDigestSeesChangesOfMappedMemory(t *testing.T) {
	h, path := hosttest.New(t).Disk, filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("good"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(memory); err != nil {
			t.Error(err)
		}
	}()
	// At first the times of the file are too new for the cache.
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
		for _, content := range []string{"good", "evil"} {
			copy(memory, content)
			if got, err := h.Digest(t.Context(), path); err != nil || got != fmt.Sprintf("%x", sha256.Sum256([]byte(content))) {
				t.Fatalf("%s is not the digest of %s: %v", got, content, err)
			}
		}
	}
}

func TestDigestErrors(t *testing.T) {
	h, dir := hosttest.New(t).Disk, hosttest.Populate(t)
	for name, want := range map[string]error{"none": fs.ErrNotExist, "dangling": fs.ErrNotExist, "dir": files.ErrNotRegular, "fifo": files.ErrNotRegular} {
		if _, err := h.Digest(t.Context(), filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stopped := errors.New("timed out after 30s")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := h.Digest(ctx, filepath.Join(dir, "file")); !errors.Is(err, stopped) {
		t.Errorf("the context has ended: %v", err)
	}
}

func TestDigestFollowsLinks(t *testing.T) {
	h, dir := hosttest.New(t).Disk, hosttest.Populate(t)
	direct, err := h.Digest(t.Context(), filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if linked, err := h.Digest(t.Context(), filepath.Join(dir, "link")); err != nil || linked != direct {
		t.Errorf("%s, want %s: %v", linked, direct, err)
	}
}
