package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestAreLinkedUnits finds the files that systemd reads by links.
func TestAreLinkedUnits(t *testing.T) {
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
		if got := areLinkedUnits([]string{at("v1/another.service"), at(name)}, []string{at("units"), at("more"), at("missing")}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestNoteManyChanges tests that the unit directories are not read for each of many changes of files that have the suffix
// of a drop-in, and that a linked file among them counts.
func TestNoteManyChanges(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("units"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		if err := os.Symlink(at(fmt.Sprintf("%d.service", i)), at(fmt.Sprintf("units/%d.service", i))); err != nil {
			t.Fatal(err)
		}
	}
	units := []string{at("units")}
	var u UnitFiles
	note := func(name string) { u.noteChange(at(name), units) }
	if n := testing.AllocsPerRun(3*maxUnchecked, func() { note("unlinked.conf") }); n > 50 {
		t.Errorf("%v allocations for each change", n)
	}
	if u.check(units); u.changed != 0 {
		t.Errorf("%d changes are counted", u.changed)
	}
	for range 10 {
		note("unlinked.conf")
	}
	note("7.service")
	if u.check(units); u.changed != 1 || len(u.unchecked) != 0 {
		t.Errorf("%d changes are counted, %d files are not checked", u.changed, len(u.unchecked))
	}
}
