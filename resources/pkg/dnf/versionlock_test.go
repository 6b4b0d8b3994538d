package dnf

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// TestLocks covers which entries are about a package, and which hold its version.
func TestLocks(t *testing.T) {
	m := &pkg.Metadata{Name: "muster-test", Version: "1.0-1.el9", Arch: "noarch", Full: "2:1.0-1.el9"}
	for entry, c := range map[string]struct{ of, holds bool }{
		"muster-test-2:1.0-1.el9.*":      {true, true},
		"muster-test-2:1.0-1.el9.noarch": {true, true},
		"muster-test-2:1.0-1.el9":        {true, true},
		"muster-test-1.0-1.el9":          {true, true},
		"muster-test-1.0-*":              {true, true},
		"muster-test-1.*":                {true, true},
		"muster-test-2:1.0":              {true, true},
		"muster-test-1.0":                {true, true},
		"muster-test-0:1.0-1.el9.*":      {true, false},
		"muster-test-1:1.0":              {true, false},
		"muster-test-2.0-1.el9":          {true, false},
		"muster-test-1[":                 {true, false},
		"muster-test":                    {},
		"muster-test-*":                  {},
		"muster-test-devel-2:1.0-1.*":    {},
		"muster-test-devel-1.0":          {},
		"muster-2:1.0-1.el9.*":           {},
		"!muster-test-2:1.0-1.el9.*":     {},
		"# muster-test-2:1.0-1.el9.*":    {},
	} {
		list := parseLocks("\n" + entry + "\n\n")
		if got := list.hold(m); got != c.holds {
			t.Errorf("%s holds: %t", entry, got)
		}
		for _, name := range []string{"muster-test", "muster-test.noarch"} {
			if got := len(list.of(name)) > 0; got != c.of {
				t.Errorf("%s is about %s: %t", entry, name, got)
			}
		}
	}
	if list := parseLocks(entry(m)); !list.hold(m) || !slices.Equal(list.of("muster-test"), []string{"muster-test-2:1.0-1.el9.*"}) {
		t.Errorf("its own entry: %q", list)
	}
}

// TestReadLocks finds the list by the configuration of the plugin.
func TestReadLocks(t *testing.T) {
	dir := t.TempDir()
	conf, list := filepath.Join(dir, "versionlock.conf"), filepath.Join(dir, "versionlock.list")
	for _, c := range []struct {
		conf, list string
		want       []string
		missing    bool
	}{
		{missing: true},
		{conf: "[main]\n", missing: true},
		{conf: "[main]\nenabled = 0\nlocklist = " + list + "\n", list: "a-1.0\n", missing: true},
		{conf: "[main]\nenabled = 1\nlocklist = " + list + "\n"},
		{conf: "[main]\nlocklist=" + list, list: "# it\na-1.0\n!b-1.0\n", want: []string{"a-1.0"}},
	} {
		for path, text := range map[string]string{conf: c.conf, list: c.list} {
			if text == "" {
				_ = os.Remove(path)
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := (&Provider{conf: conf}).readLocks()
		if !slices.Equal(got, c.want) || errors.Is(err, pkg.ErrPlugin) != c.missing || !c.missing && err != nil {
			t.Errorf("%q, %q: %q, %v", c.conf, c.list, got, err)
		}
		if c.missing && (!slices.Contains(resource.Prerequisites(err), "package:python3-dnf-plugin-versionlock") || !strings.Contains(err.Error(), conf)) {
			t.Errorf("%v", err)
		}
	}
}

func FuzzParseLocks(f *testing.F) {
	f.Add("# Added lock\nmuster-test-0:1.0-1.*\n!other-1.0\n", "muster-test")
	f.Add("a-[1\na-1", "a.noarch")
	f.Fuzz(func(t *testing.T, text, name string) {
		list := parseLocks(text)
		for _, entry := range list.of(name) {
			if !strings.HasPrefix(entry, withoutArchitecture(name)+"-") {
				t.Errorf("%q is not about %q", entry, name)
			}
		}
		m := &pkg.Metadata{Name: name, Version: "1.0-1", Arch: "noarch", Full: "0:1.0-1"}
		if list.hold(m) && len(list.of(name)) == 0 {
			t.Errorf("%q holds %q without an entry", text, name)
		}
	})
}
