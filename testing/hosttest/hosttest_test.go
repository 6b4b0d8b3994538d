package hosttest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotDiff(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"content", "mode", "gone", "same"} {
		write(t, filepath.Join(dir, name), "one")
	}
	if err := os.Symlink("here", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	before := hosttest.Snapshot(t, dir)
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)); len(diff) > 0 {
		t.Fatalf("two looks at the same tree differ: %v", diff)
	}

	write(t, filepath.Join(dir, "content"), "two")
	write(t, filepath.Join(dir, "new"), "")
	for _, err := range []error{
		os.Chmod(filepath.Join(dir, "mode"), 0o600),
		os.Remove(filepath.Join(dir, "gone")),
		os.Remove(filepath.Join(dir, "link")),
		os.Symlink("there", filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}

	diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir))
	for _, want := range []string{"content: digest", "mode: mode", "gone: removed", "new: added", "link: target was here, is there"} {
		if !slices.ContainsFunc(diff, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("no line begins with %q: %q", want, diff)
		}
	}
	if slices.ContainsFunc(diff, func(line string) bool { return strings.HasPrefix(line, "same") }) {
		t.Errorf("an untouched file is in the difference: %q", diff)
	}
}

func TestNewMayWrite(t *testing.T) {
	h := hosttest.New(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := h.Write(t.Context(), path, strings.NewReader("x"), hosttest.Attrs(t, 0o640)); err != nil {
		t.Fatal(err)
	}
	user, group := hosttest.Owner(t)
	for _, id := range []struct {
		want string
		get  func() (uint32, error)
	}{
		{user, func() (uint32, error) { return h.UID(t.Context(), user) }},
		{group, func() (uint32, error) { return h.GID(t.Context(), group) }},
	} {
		if _, err := id.get(); err != nil {
			t.Errorf("owner %s is not taken: %v", id.want, err)
		}
	}
	if item := hosttest.Snapshot(t, filepath.Dir(path))["file"]; item.Mode != 0o640 || item.Size != 1 {
		t.Errorf("the file is %+v", item)
	}
}
