//go:build system

package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/testing/hosttest"
)

// openers are what makes a state directory that is missing.
func openers(t *testing.T, dir string) map[string]func() error {
	t.Helper()

	return map[string]func() error{
		"state":  func() error { return files.New(files.Options{StateDir: dir}).OpenState(true) },
		"noop":   func() error { return files.New(files.Options{StateDir: dir}).OpenState(false) },
		"litter": func() error { return files.New(files.Options{StateDir: dir}).BeginRun(t.Context(), files.RunOptions{}) },
		"lock": func() error {
			_, err := state.NewLocks(dir).Lock(t.Context(), state.LockOptions{})
			return err
		},
	}
}

// TestSystemStateBelowStranger has missing state directories below a directory of another user, or a
// world-writable one.
func TestSystemStateBelowStranger(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "stranger/evil -> DIR/etc", "stranger/dangling -> DIR/etc/new", "open/", "sticky/", "sticky/dangling -> DIR/etc/new")
	hosttest.Give(t, home+"/evil", home+"/dangling", base+"/sticky/dangling")
	if err := errors.Join(os.Chmod(base+"/open", 0o777), os.Chmod(base+"/sticky", 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	before := hosttest.Snapshot(t, base)
	for path, words := range map[string]string{
		"stranger/st":       home + " belongs to user 54321, who may replace files in it",
		"stranger/new/st":   home + " belongs to user 54321, who may replace files in it",
		"stranger/evil/st":  home + "/evil is a link of user 54321",
		"stranger/dangling": home + " belongs to user 54321, who may replace files in it",
		"open/new/st":       "everybody may write to " + base + "/open",
	} {
		for name, open := range openers(t, filepath.Join(base, path)) {
			if err := open(); !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), words) {
				t.Errorf("%s, %s: %v, not %q", path, name, err, words)
			}
		}
	}
	for name, open := range openers(t, base+"/sticky/dangling/st") {
		if err := open(); err == nil && name != "noop" {
			t.Errorf("%s: a link of another user in a sticky directory is followed", name)
		}
	}
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, base)); len(diff) > 0 {
		t.Errorf("it left %q", diff)
	}
	if err := files.New(files.Options{StateDir: base + "/sticky/new/st"}).OpenState(true); err != nil {
		t.Errorf("in a sticky directory: %v", err)
	}
}

// TestSystemStateWhileSwapped has the owner exchange the parent of a state
// directory with a link to a directory of root all the time.
func TestSystemStateWhileSwapped(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	base := filepath.Dir(home)
	hosttest.MakeTree(t, base, "etc/", "stranger/v/", "stranger/evil -> DIR/etc")
	hosttest.Give(t, home+"/v", home+"/evil")
	stop := hosttest.Swap(t, home+"/v", home+"/evil")
	for range 500 {
		for _, open := range openers(t, home+"/v/st") {
			if err := open(); err == nil {
				t.Fatal("it was made")
			}
		}
	}
	if stop() == 0 {
		t.Error("no race")
	}
	for _, dir := range []string{"etc", "stranger/v", "stranger/evil"} {
		if left, err := os.ReadDir(filepath.Join(base, dir)); err != nil || len(left) > 0 {
			t.Errorf("it left %v in %s: %v", left, dir, err)
		}
	}
}
