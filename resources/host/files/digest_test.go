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
