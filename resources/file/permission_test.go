package file_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// open gives a directory of the test that every user may go through.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	check(t, os.Chmod(filepath.Dir(dir), 0o755))

	return dir
}

// TestPermissionDenied covers a path without permission to inspect it: the state is absent, with a
// warning, and the plan is empty.
func TestPermissionDenied(t *testing.T) {
	dir := open(t)
	closed := filepath.Join(dir, "closed")
	check(t, os.Mkdir(closed, 0))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	var log strings.Builder
	env, typ := testEnv(t, dir), file.Type{}
	env.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, ensure := range []string{"present", "absent", "directory"} {
		log.Reset()
		var state *file.State
		var statusErr, planErr error
		hosttest.Powerless(t, func() {
			spec := &file.Spec{Common: model.Common{Name: closed + "/x", Ensure: ensure}, Owner: "0", Group: "0", Mode: "0644"}
			if state, statusErr = typ.Status(t.Context(), env, file.Posix{}, spec); statusErr == nil {
				_, planErr = typ.Plan(spec, state, false)
			}
		})
		check(t, statusErr)
		if state.Ensure != "absent" || state.Metadata != nil || !strings.Contains(log.String(), "level=WARN") {
			t.Errorf("%s: %+v, log %q", ensure, state, &log)
		}
		if !errors.Is(planErr, fs.ErrPermission) {
			t.Errorf("%s: planned, %v", ensure, planErr)
		}
	}
}

// TestUnreadable checks files that may be looked at but not read.
func TestUnreadable(t *testing.T) {
	dir := open(t)
	withFile("x", "secret", 0)(t, dir)
	withFile("src", "secret", 0)(t, dir)
	env, typ := testEnv(t, dir), file.Type{}
	content := "new"
	for name, spec := range map[string]*file.Spec{
		"could not read the file":   {Common: model.Common{Name: dir + "/x"}, Content: &content},
		"could not read the source": {Common: model.Common{Name: dir + "/y"}, Source: "src"},
	} {
		spec.Ensure, spec.Owner, spec.Group, spec.Mode = "present", "0", "0", "0200"
		var err error
		hosttest.Powerless(t, func() { _, err = typ.Status(t.Context(), env, file.Posix{}, spec) })
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, not %q", err, name)
		}
	}
}

// TestOwnUnreadable repairs a file that its owner cannot read because of its mode, so its content cannot
// be compared.
func TestOwnUnreadable(t *testing.T) {
	dir := open(t)
	uid, gid := hosttest.Ordinary()
	check(t, os.Chown(dir, uid, gid))
	path := filepath.Join(dir, "x")
	withFile("x", "old", 0)(t, dir)
	check(t, os.Chown(path, uid, gid))
	check(t, os.Chmod(path, 0))
	env, typ := testEnv(t, dir), file.Type{}
	content := "new"
	spec := &file.Spec{Common: model.Common{Name: path, Ensure: "present"}, Content: &content, Owner: strconv.Itoa(uid), Group: strconv.Itoa(gid), Mode: "0600"}
	var plan, again resource.Plan
	var errs [5]error
	hosttest.Powerless(t, func() {
		var state *file.State
		if state, errs[0] = typ.Status(t.Context(), env, file.Posix{}, spec); errs[0] != nil {
			return
		}
		plan, errs[1] = typ.Plan(spec, state, false)
		_, errs[2] = typ.Apply(t.Context(), env, file.Posix{}, spec, plan)
		if state, errs[3] = typ.Status(t.Context(), env, file.Posix{}, spec); errs[3] == nil {
			again, errs[4] = typ.Plan(spec, state, false)
		}
	})
	check(t, errors.Join(errs[:]...))
	change := plan.Changes[0]
	if plan.Message() != "Would have updated the file" || change.From != "unreadable" || !strings.HasPrefix(change.Diff, "unreadable, 3 B, ") || plan.Changes[1].From != "0000" {
		t.Errorf("%+v", plan)
	}
	if !again.Empty() {
		t.Errorf("still due: %+v", again)
	}
	holds("x", "new", 0o600)(t, dir)
}

// TestDirectoryThatMayNotBeWritten checks that the plan reports the error of the change.
func TestDirectoryThatMayNotBeWritten(t *testing.T) {
	dir := open(t)
	uid, gid := hosttest.Ordinary()
	withDir("closed", 0o755)(t, dir)
	withFile("closed/x", "old", 0o644)(t, dir)
	for _, name := range []string{"closed/x", "closed"} {
		check(t, os.Chown(filepath.Join(dir, name), uid, gid))
	}
	check(t, os.Chmod(dir+"/closed", 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir+"/closed", 0o755) })
	env, typ := testEnv(t, dir), file.Type{}
	owner := typetest.Properties{"owner": strconv.Itoa(uid), "group": strconv.Itoa(gid), "mode": "0644"}
	for name, c := range map[string]struct {
		path    string
		more    typetest.Properties
		refused bool
	}{
		"a new file":               {"closed/new", nil, true},
		"a new directory":          {"closed/new/deep", typetest.Properties{"ensure": "directory"}, true},
		"other content":            {"closed/x", typetest.Properties{"content": "new"}, true},
		"a removal":                {"closed/x", typetest.Properties{"ensure": "absent"}, true},
		"the same content":         {"closed/x", typetest.Properties{"content": "old"}, false},
		"attributes":               {"closed/x", typetest.Properties{"mode": "0600"}, false},
		"nothing to remove":        {"closed/none", typetest.Properties{"ensure": "absent"}, false},
		"a removal of the closed":  {"closed", typetest.Properties{"ensure": "absent", "force": true}, uid != os.Geteuid()},
		"attributes of the closed": {"closed", typetest.Properties{"ensure": "directory", "mode": "0755"}, false},
	} {
		properties := typetest.Properties{"name": filepath.Join(dir, c.path)}
		maps.Copy(properties, owner)
		maps.Copy(properties, c.more)
		spec := specOf(t, properties)
		var err error
		hosttest.Powerless(t, func() {
			var state *file.State
			if state, err = typ.Status(t.Context(), env, file.Posix{}, spec); err == nil {
				_, err = typ.Plan(spec, state, false)
			}
		})
		if errors.Is(err, fs.ErrPermission) != c.refused || (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
		if want := []string{"path:" + filepath.Dir(filepath.Join(dir, c.path))}; c.refused && name != "a new directory" && !slices.Equal(resource.Prerequisites(err), want) {
			t.Errorf("%s: what may be put right by %q is %v", name, want, resource.Prerequisites(err))
		}
	}
}
