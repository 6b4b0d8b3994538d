package archive_test

import (
	"archive/tar"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
)

// during is a context that calls a function at the first call of Err.
type during struct {
	context.Context
	do func()
}

func (d *during) Err() error {
	if do := d.do; do != nil {
		d.do = nil
		do()
	}

	return d.Context.Err()
}

// TestTargetAppearsDuringTheInspection makes the target while Extract inspects the
// archive. The directory keeps its mode and its files.
func TestTargetAppearsDuringTheInspection(t *testing.T) {
	t.Parallel()
	target := t.TempDir() + "/ex"
	s := newStand(t, t.TempDir()+"/archive", pack(t, regular("a", "x", 0o644)), archive.Tar, target)
	made := false
	ctx := &during{t.Context(), func() {
		made = true
		if err := errors.Join(os.Mkdir(target, 0o700), os.WriteFile(target+"/diary", []byte("x"), 0o600)); err != nil {
			t.Error(err)
		}
	}}
	if _, err := s.Extract(ctx, s.disk, target, archive.Limits{}, archive.Options{}); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode().Perm() != 0o700 || !made {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
	for _, name := range []string{"a", "diary"} {
		if _, err := os.Stat(target + "/" + name); err != nil {
			t.Error(err)
		}
	}
}

// TestTargetBelowAFile refuses a target that is a file.
func TestTargetBelowAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := extractInto(t, dir+"/file", pack(t, []tar.Header{regular("a", "x", 0o644)}...), archive.Tar, false); err == nil {
		t.Error("no error")
	}
}
