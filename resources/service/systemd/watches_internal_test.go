package systemd

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWatches checks the watches of the links that enable a unit.
func TestWatches(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"getty.target.wants", "web.target.requires", "app.service.d"} {
		if err := os.MkdirAll(filepath.Join(root, "etc/systemd/system", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, p := range New(root).Watches("app") {
		got = append(got, p.String())
	}
	want := []string{
		"path /etc/systemd/system/app.service",
		"path /etc/systemd/system/multi-user.target.wants/app.service",
		"path /etc/systemd/system/getty.target.wants/app.service",
		"path /etc/systemd/system/web.target.requires/app.service",
		"unit app.service",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q is watched, not %q", got, want)
	}
}
