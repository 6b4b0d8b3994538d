package archive_test

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestLinksOut unpacks links that lead out of the target. No entry of this archive or a later
// one is written through them.
func TestLinksOut(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	target, outside := base+"/target", base+"/outside"
	hosttest.MakeTree(t, base, "outside/", "outside/f")
	before := hosttest.Snapshot(t, outside)
	unpack := func(limits archive.Limits, entries ...tar.Header) error {
		return newStand(t, filepath.Join(t.TempDir(), "archive"), pack(t, entries...), archive.Tar, target).extract(t, limits, false)
	}
	keep := archive.Limits{LinksOut: true}
	links := []tar.Header{directory("app", 0o755), link("app/etc", outside), link("app/up", "../../outside"), link("app/gone", "/no/such/path")}
	if err := unpack(archive.Limits{}, links...); !errors.Is(err, archive.ErrLeadsOut) || !errors.Is(err, archive.ErrUnsafeEntry) {
		t.Errorf("without links: keep the error is %v", err)
	}
	// Twice, because the links of an earlier version are replaced.
	for range 2 {
		if err := unpack(keep, links...); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"etc": outside, "up": "../../outside", "gone": "/no/such/path"} {
		if got, err := os.Readlink(target + "/app/" + name); got != want || err != nil {
			t.Errorf("%s leads to %q, %v", name, got, err)
		}
	}
	for name, entries := range map[string][]tar.Header{
		"a file through it":           {link("app/new", outside), regular("app/new/f", "evil", 0o644)},
		"a file through an old one":   {regular("app/etc/f", "evil", 0o644)},
		"a directory through it":      {link("app/new", outside), directory("app/new/d", 0o777)},
		"a directory in its place":    {link("app/new", outside), directory("app/new", 0o777)},
		"a file in its place":         {link("app/new", outside+"/f"), regular("app/new", "evil", 0o644)},
		"a hard link to it":           {link("app/new", outside+"/f"), hard("app/h", "app/new"), regular("app/h", "evil", 0o644)},
		"a hard link through it":      {link("app/new", outside), hard("app/h", "app/new/f")},
		"a link through an old one":   {link("app/etc/l", "/")},
		"a target longer than a path": {link("app/new", "/"+strings.Repeat("x", 5000))},
	} {
		if err := unpack(keep, entries...); !errors.Is(err, archive.ErrUnsafeEntry) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	// A file of the next version takes the place of a link.
	if err := unpack(keep, regular("app/up", "file", 0o644)); err != nil {
		t.Error(err)
	}
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, outside)); len(diff) > 0 {
		t.Errorf("something outside was changed: %q", diff)
	}
}
