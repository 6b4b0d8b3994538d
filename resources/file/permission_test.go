package file_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/file/posix"
	"golang.org/x/sys/unix"
)

// powerless calls f with no more rights to files than any user has.
func powerless(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, so nothing else ever runs as this user.
		runtime.LockOSThread()
		err := unix.Setfsuid(65534)
		if err == nil {
			f()
		}
		done <- err
	}()
	check(t, <-done)
}

// open gives a directory of the test that every user may go through.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	check(t, os.Chmod(filepath.Dir(dir), 0o755))

	return dir
}

// TestPermissionDenied covers the row of a path that may not be looked at:
// absent, with a warning, and still nothing is planned.
func TestPermissionDenied(t *testing.T) {
	dir := open(t)
	closed := filepath.Join(dir, "closed")
	check(t, os.Mkdir(closed, 0))
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	var log strings.Builder
	env, typ := testEnv(t, dir), file.New(posix.Provider{})
	env.Log = slog.New(slog.NewTextHandler(&log, nil))
	for _, ensure := range []string{"present", "absent", "directory"} {
		log.Reset()
		var state *file.State
		var statusErr, planErr error
		powerless(t, func() {
			spec := &file.Spec{Common: model.Common{Name: closed + "/x", Ensure: ensure}, Owner: "0", Group: "0", Mode: "0644"}
			if state, statusErr = typ.Status(t.Context(), env, posix.Provider{}, spec); statusErr == nil {
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
	env, typ := testEnv(t, dir), file.New(posix.Provider{})
	content := "new"
	for name, spec := range map[string]*file.Spec{
		"could not read the file":   {Common: model.Common{Name: dir + "/x"}, Content: &content},
		"could not read the source": {Common: model.Common{Name: dir + "/y"}, Source: "src"},
	} {
		spec.Ensure, spec.Owner, spec.Group, spec.Mode = "present", "0", "0", "0644"
		var err error
		powerless(t, func() { _, err = typ.Status(t.Context(), env, posix.Provider{}, spec) })
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, not %q", err, name)
		}
	}
}
