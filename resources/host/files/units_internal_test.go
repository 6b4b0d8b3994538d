package files

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIsLinkedUnit finds the files that systemd reads by links.
func TestIsLinkedUnit(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"units/own.service.d", "v1/d", "real"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"app": "v1", "units/app.service": at("app/app.service"), "units/other.service": "../v1/named.service", "units/app.service.d": at("app/d"),
		"units/own.service.d/10.conf": at("own.conf"), "units/note.txt": at("v1/note.service"), "more": "real",
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"app/app.service":       true,
		"v1/app.service":        true,
		"v1/named.service":      true,
		"v1/d/20.conf":          true,
		"own.conf":              true,
		"real/a.timer":          true,
		"real/a.timer.d/1.conf": true,
		"real/deep/a.timer":     false,
		"v1/d/20.service":       false,
		"v1/d/deep/20.conf":     false,
		"v1/note.service":       false,
		"v1/another.service":    false,
		"another.conf":          false,
		"v1/app.txt":            false,
	} {
		if got := isLinkedUnit(at(name), []string{at("units"), at("more"), at("missing")}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
