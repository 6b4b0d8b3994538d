//go:build system

package scaffold_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestSystemMounts has mounts below the target. No file on them is removed, and none of
// the others either.
func TestSystemMounts(t *testing.T) {
	hosttest.NeedRoot(t)
	made := all(put("src/a", "new", "src/sub/b", "new", "out/a", "old", "out/extra", "x", "other/precious", "x", "other/b", "new"), directory("out/sub"), directory("out/data"))
	for name, c := range map[string]struct {
		from, at string
		more     []any
		named    string
	}{
		"purge, file system":     {"", "out/sub", []any{"purge", true}, "out/sub"},
		"purge, bound directory": {"other", "out/sub", []any{"purge", true}, "out/sub"},
		"purge, bound file":      {"other/precious", "out/extra", []any{"purge", true}, "out/extra"},
		"absent, bound":          {"other", "out/sub", []any{"ensure", "absent"}, "out/sub"},
		"a file to write":        {"other/precious", "out/a", nil, "out/a"},
		"nothing to purge there": {"src", "out/data", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, made, c.more...)
			from := c.from
			if from != "" {
				from = s.dir + "/" + from
			}
			hosttest.Mount(t, from, s.dir+"/"+c.at)
			before := hosttest.Snapshot(t, s.dir)
			_, planned := s.typ.Plan(s.spec, s.status(), false)
			if c.named == "" {
				if planned != nil {
					t.Error(planned)
				}
				return
			}
			if !errors.Is(planned, paths.ErrMounted) || !strings.Contains(planned.Error(), s.dir+"/"+c.named+" is a mount point") {
				t.Errorf("the error is %v", planned)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, s.dir)); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
		})
	}
}

// TestSystemPostMounts has a post command mount a directory that purge would empty.
func TestSystemPostMounts(t *testing.T) {
	hosttest.NeedRoot(t)
	s := newSubject(t, put("src/a", "new", "out/sub/extra", "x", "other/extra", "x"))
	s.now("purge", true, "post", post("a", "sh -c 'mount --bind "+s.dir+"/other "+s.dir+"/out/sub'"))
	t.Cleanup(func() { hosttest.Unmount(t, s.dir+"/out/sub") })
	if err := s.apply(); !errors.Is(err, paths.ErrMounted) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(s.dir + "/other/extra"); err != nil {
		t.Error(err)
	}
}
