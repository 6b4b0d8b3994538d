package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestLookAndFollow(t *testing.T) {
	h, dir := hosttest.New(t).Disk, hosttest.Populate(t)
	for name, want := range map[string][2]files.Kind{
		"file":         {files.File, files.File},
		"dir":          {files.Directory, files.Directory},
		"link":         {files.Link, files.File},
		"dirlink":      {files.Link, files.Directory},
		"dirlink/none": {files.Absent, files.Absent},
		"dangling":     {files.Link, files.Absent},
		"fifo":         {files.Other, files.Other},
		"none":         {files.Absent, files.Absent},
		"none/below":   {files.Absent, files.Absent},
		"file/below":   {files.Absent, files.Absent},
	} {
		path := filepath.Join(dir, name)
		looked, err := h.Look(path)
		if err != nil || looked.Kind != want[0] || looked.Path != path {
			t.Errorf("Look(%s) is %v at %s, want %v: %v", name, looked.Kind, looked.Path, want[0], err)
		}
		followed, err := h.Follow(path)
		if err != nil || followed.Kind != want[1] {
			t.Errorf("Follow(%s) is %v, want %v: %v", name, followed.Kind, want[1], err)
		}
	}
	if _, err := h.Follow(filepath.Join(dir, "loop")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop of links: the error is %v", err)
	}
	entry, err := h.Look(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	if entry.Size != 4 || entry.Mode != 0o4640 || !entry.ModTime.Equal(time.Unix(1000, 5)) ||
		entry.UID != uint32(os.Geteuid()) || entry.GID != uint32(os.Getegid()) {
		t.Errorf("the entry is %+v", entry)
	}
}

func TestKindsHaveWords(t *testing.T) {
	for kind, want := range map[files.Kind]string{files.Absent: "absent", files.File: "file", files.Directory: "directory", files.Link: "link", files.Other: "special file"} {
		if kind.String() != want {
			t.Errorf("%d is %q, want %q", kind, kind, want)
		}
	}
}

func TestRead(t *testing.T) {
	dir := hosttest.Populate(t)
	for name, c := range map[string]struct {
		max  int64
		want string
		is   error
	}{
		"file":     {max: 4, want: "four"},
		"./file":   {max: 3, is: files.ErrTooLarge},
		"link":     {max: 100, want: "four"},
		"dir":      {max: 100, is: files.ErrNotRegular},
		"fifo":     {max: 100, is: files.ErrNotRegular},
		"none":     {max: 100, is: fs.ErrNotExist},
		"dangling": {max: 100, is: fs.ErrNotExist},
	} {
		got, err := files.Read(dir+"/"+name, c.max)
		if string(got) != c.want || !errors.Is(err, c.is) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	// Files of /proc say that they have no bytes at all.
	if got, err := files.Read("/proc/self/status", 1<<16); err != nil || !strings.Contains(string(got), "Pid:") {
		t.Errorf("a file of /proc: %q, %v", got, err)
	}
	if _, err := files.Read("/proc/self/status", 10); !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("a longer file of /proc: %v", err)
	}
}

func TestRemove(t *testing.T) {
	h, dir := hosttest.New(t).Disk, hosttest.Populate(t)
	if err := os.WriteFile(filepath.Join(dir, "dir", "below"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(filepath.Join(dir, "dir")); !errors.Is(err, files.ErrNotEmpty) {
		t.Errorf("a full directory: %v", err)
	}
	for _, name := range []string{"dirlink", "link", "fifo", "file", "loop", "dangling", "none", "none/below", "dir/below", "dir/below/none", "dir"} {
		path := filepath.Join(dir, name)
		if err := h.Remove(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if entry, err := h.Look(path); err != nil || entry.Kind != files.Absent {
			t.Errorf("%s is still there as %v: %v", name, entry.Kind, err)
		}
		if _, err := os.Stat(dir + "/dir/below"); name == "dirlink" && err != nil {
			t.Errorf("what the link led to is gone: %v", err)
		}
	}
	if err := h.Remove("/"); !errors.Is(err, files.ErrRefused) {
		t.Errorf("/: %v", err)
	}
}

func TestRemoveAll(t *testing.T) {
	h, dir := hosttest.New(t).Disk, hosttest.Populate(t)
	outside := filepath.Join(t.TempDir(), "outside")
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "dir", "a", "b"), 0o755),
		os.WriteFile(filepath.Join(dir, "dir", "a", "b", "file"), nil, 0o600),
		os.MkdirAll(filepath.Join(outside, "kept"), 0o755),
		os.Symlink(outside, filepath.Join(dir, "dir", "a", "out")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dirlink", "dir", "file", "none", "none/below"} {
		if err := h.RemoveAll(t.Context(), filepath.Join(dir, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if entry, err := h.Look(filepath.Join(dir, name)); err != nil || entry.Kind != files.Absent {
			t.Errorf("%s is still there as %v: %v", name, entry.Kind, err)
		}
		if _, err := os.Stat(dir + "/dir/a/b/file"); name == "dirlink" && err != nil {
			t.Errorf("what the link led to is gone: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("what a link below led to is gone: %v", err)
	}
	if err := h.RemoveAll(t.Context(), "/"); !errors.Is(err, files.ErrRefused) {
		t.Errorf("/: %v", err)
	}
	if err := h.RemoveAll(t.Context(), ""); !errors.Is(err, files.ErrRefused) {
		t.Errorf("no path: %v", err)
	}
}

func TestIsEmpty(t *testing.T) {
	dir := hosttest.Populate(t)
	for name, want := range map[string]bool{"dir": true, "dirlink": true, ".": false} {
		if empty, err := files.IsEmpty(filepath.Join(dir, name)); err != nil || empty != want {
			t.Errorf("%s: %v, %v", name, empty, err)
		}
	}
	if _, err := files.IsEmpty(filepath.Join(dir, "file")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	if names, err := files.Names(dir); err != nil || !slices.IsSorted(names) || !slices.Contains(names, "dirlink") {
		t.Errorf("names: %v, %v", names, err)
	}
	if _, err := files.IsEmpty(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
}
