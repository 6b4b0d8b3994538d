//go:build system

package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemRightsOfRoot: what another user can change gets no setuid of root, whether as file, directory or source.
func TestSystemRightsOfRoot(t *testing.T) {
	hosttest.NeedRoot(t)
	rights := typetest.Properties{"owner": "0", "group": "0", "mode": "0755", "setuid": true}
	for name, c := range map[string]struct {
		more func(home string) typetest.Properties
		says string
	}{
		"in their directory": {func(home string) typetest.Properties {
			return typetest.Properties{"name": home + "/x", "content": "x"}
		}, "belongs to user 54321, who may replace files in it"},
		"in a new directory below theirs": {func(home string) typetest.Properties {
			return typetest.Properties{"name": home + "/new/x", "content": "x", "parents": true}
		}, "belongs to user 54321, who may replace files in it"},
		"of their source": {func(home string) typetest.Properties {
			return typetest.Properties{"name": filepath.Dir(home) + "/x", "source": home + "/own"}
		}, "others than root may write to it"},
		"of a source of root in their directory": {func(home string) typetest.Properties {
			return typetest.Properties{"name": filepath.Dir(home) + "/x", "source": home + "/root"}
		}, "belongs to user 54321"},
	} {
		t.Run(name, func(t *testing.T) {
			home := hosttest.Foreign(t)
			all(withFile("own", "x", 0o755), withFile("root", "x", 0o755))(t, home)
			hosttest.Give(t, home+"/own")
			p := c.more(home)
			for key, value := range rights {
				p[key] = value
			}
			before := hosttest.Snapshot(t, filepath.Dir(home))
			if err := applied(t, p); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v, not %q", err, c.says)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, filepath.Dir(home))); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
		})
	}
}

// TestSystemRightsAfterAChangeOfOwner: a new owner gets no file with bits that the manifest does not have.
func TestSystemRightsAfterAChangeOfOwner(t *testing.T) {
	hosttest.NeedRoot(t)
	dir := t.TempDir()
	withFile("x", "kept", 0o6755)(t, dir)
	check(t, os.Chown(dir+"/x", 54321, 54321))
	check(t, os.Chmod(dir+"/x", 0o755|os.ModeSetuid|os.ModeSetgid))
	check(t, applied(t, typetest.Properties{"name": dir + "/x", "owner": "0", "group": "0", "mode": "0755"}))
	holds("x", "kept", 0o755)(t, dir)
	check(t, applied(t, typetest.Properties{"name": dir + "/x", "owner": "54321", "group": "54321", "mode": "0755", "content": "new", "setuid": true}))
	holds("x", "new", 0o4755)(t, dir)
}
