//go:build system

package archive_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
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
			if !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), dir+"/a.tar.gz is a mount point") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestSystemUnpackOntoAMount unpacks onto a file that is a mount point. It fails before anything is
// written, and names the mount point. If that is the creates path, a dry run fails too.
func TestSystemUnpackOntoAMount(t *testing.T) {
	hosttest.NeedRoot(t)
	s, dir := newStand(t), t.TempDir()
	all(withFile("opt/app/conf", "mine"), withFile("bound", "mine"))(t, dir)
	hosttest.Mount(t, dir+"/bound", dir+"/opt/app/conf")
	want := dir + "/opt/app/conf is a mount point and cannot be removed or replaced"
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp})(dir))
	_, plan := o.due()
	if _, err := o.apply(plan); !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
	holds("opt/app/bin/tool", "")(t, dir)
	holds("opt/app/conf", "mine")(t, dir)
	o = newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": "DIR/opt/app/conf", "checksum": strings.Repeat("0", 64)})(dir))
	state, err := o.typ.Status(t.Context(), o.env, o.provider, o.spec)
	check(t, err)
	if _, err := o.typ.Plan(o.spec, state, false); !errors.Is(err, paths.ErrMounted) || !strings.Contains(err.Error(), want) {
		t.Errorf("the dry run returns %v", err)
	}
}
