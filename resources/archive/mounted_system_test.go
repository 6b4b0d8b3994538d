//go:build system

package archive_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/mounts"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemMountedArchive: a dry run refuses to replace or remove an archive that is a mount point.
func TestSystemMountedArchive(t *testing.T) {
	hosttest.NeedRoot(t)
	for name, more := range map[string]typetest.Properties{
		"other content": {"checksum": strings.Repeat("0", 64)},
		"removed":       {"ensure": "absent"},
		"cleaned up":    {"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStand(t), t.TempDir()
			all(withFile("a.tar.gz", s.old), withFile("bound", s.old))(t, dir)
			hosttest.Mount(t, dir+"/bound", dir+"/a.tar.gz")
			o := newOne(t, s.of(t, more)(dir))
			state, err := o.typ.Status(t.Context(), o.env, o.provider, o.spec)
			check(t, err)
			_, err = o.typ.Plan(o.spec, state, false)
			if !errors.Is(err, mounts.ErrMounted) || !strings.Contains(err.Error(), dir+"/a.tar.gz is a mount point") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
