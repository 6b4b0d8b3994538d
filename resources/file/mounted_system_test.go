//go:build system

package file_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemMounts has mount points where a file is removed or replaced: the plan
// already refuses, and names them.
func TestSystemMounts(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, c := range map[string]struct {
		from, at string
		p        typetest.Properties
		named    string
	}{
		"file system in a directory":   {"", "d/sub", typetest.Properties{"name": "d", "ensure": "absent", "force": true}, "d/sub"},
		"directory bound into another": {"other", "d/sub", typetest.Properties{"name": "d", "ensure": "absent", "force": true}, "d/sub"},
		"empty directory":              {"empty", "d/sub", typetest.Properties{"name": "d/sub", "ensure": "absent"}, "d/sub"},
		"file, removed":                {"other/f", "d/f", typetest.Properties{"name": "d/f", "ensure": "absent"}, "d/f"},
		"file, other content":          {"other/f", "d/f", typetest.Properties{"name": "d/f", "content": "new", "mode": "0644"}, "d/f"},
		"file, other mode":             {"other/f", "d/f", typetest.Properties{"name": "d/f", "content": "same", "mode": "0600"}, "d/f"},
		"file, equal":                  {"other/f", "d/f", typetest.Properties{"name": "d/f", "content": "same", "mode": "0644"}, ""},
		"file, only its mode":          {"other/f", "d/f", typetest.Properties{"name": "d/f", "mode": "0600"}, ""},
		"directory beside":             {"other", "d/sub", typetest.Properties{"name": "e", "ensure": "absent", "force": true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			all(withDir("other", 0o755), withFile("other/f", "same", 0o644), withDir("empty", 0o755), withDir("d", 0o755), withDir("d/sub", 0o755), withFile("d/f", "", 0o644), withDir("e", 0o755), withFile("e/f", "", 0o644))(t, dir)
			if c.from != "" {
				c.from = dir + "/" + c.from
			}
			hosttest.Mount(t, c.from, dir+"/"+c.at)
			before := hosttest.Snapshot(t, dir)
			c.p["name"] = dir + "/" + c.p["name"].(string)
			if c.p["ensure"] == nil {
				c.p["owner"], c.p["group"] = "0", "0"
			}
			err := applied(t, c.p)
			if c.named == "" {
				check(t, err)
				return
			}
			if !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), dir+"/"+c.named+" is a mount point") {
				t.Errorf("the error is %v", err)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
		})
	}
}
