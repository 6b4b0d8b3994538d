package systemd

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func parse(text string) []unit {
	var p parser
	for line := range strings.Lines(text) {
		p.line(strings.TrimSuffix(line, "\n"))
	}

	return p.units
}

// TestParse reads output of systemctl show of systemd 252 for units of all kinds.
func TestParse(t *testing.T) {
	text, err := os.ReadFile("testdata/show.txt")
	if err != nil {
		t.Fatal(err)
	}
	const since = 81276590 * time.Microsecond
	want := []unit{
		{id: "web.service", load: "loaded", active: "active", unitFile: "enabled", needReload: true, activeSince: since},
		{id: "nosuch.service", load: "not-found", active: "inactive"},
		{id: "dbus.service", load: "loaded", active: "active", unitFile: "static", activeSince: since},
		{id: "old.service", load: "masked", active: "inactive", unitFile: "masked"},
		{id: "-.slice", load: "loaded", active: "active", activeSince: since},
		{id: `bad\x2bname.service`, load: "not-found", active: "inactive"},
	}
	if got := parse(string(text)); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for text, want := range map[string]bool{"Id=a\nJob=712\n": true, "Id=a\nJob=\n": false, "Id=a\nJob=0\n": false, "Id=a\n": false} {
		if got := parse(text); got[0].job != want {
			t.Errorf("%q gives %+v", text, got)
		}
	}
	for text, units := range map[string]int{"": 0, "\n\n": 0, "Id=a\n\n\n\nId=b": 2, "Running in chroot, ignoring command 'show'\n": 1} {
		if got := parse(text); len(got) != units {
			t.Errorf("%q gives %+v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/show.txt")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("\n\nId\n=\n\nActiveState=a=b\n")
	f.Fuzz(func(t *testing.T, text string) {
		blocks := 0
		for block := range strings.SplitSeq(text, "\n\n") {
			if strings.Trim(block, "\n") != "" {
				blocks++
			}
		}
		units := parse(text)
		if len(units) != blocks {
			t.Errorf("%d units of %d blocks", len(units), blocks)
		}
		for _, u := range units {
			if strings.Contains(u.id+u.load+u.active+u.unitFile, "\n") {
				t.Errorf("%+v", u)
			}
		}
	})
}
