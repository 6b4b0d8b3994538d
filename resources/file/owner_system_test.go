//go:build system

package file_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestSystemSecretMovedToAManagedPath has a stranger rename what root keeps in
// their directory to a path that root manages or copies.
func TestSystemSecretMovedToAManagedPath(t *testing.T) {
	hosttest.NeedRoot(t)
	theirs := typetest.Properties{"owner": "54321", "group": "54321", "mode": "0600"}
	for name, c := range map[string]struct {
		base    typetest.Properties
		more    func(home string) typetest.Properties
		refused string
	}{
		"attributes": {theirs, func(home string) typetest.Properties {
			return typetest.Properties{"name": home + "/secret"}
		}, "/secret"},
		"directory": {theirs, func(home string) typetest.Properties {
			return typetest.Properties{"name": home + "/dir", "ensure": "directory", "mode": "0700"}
		}, "/dir"},
		"group": {theirs, func(home string) typetest.Properties {
			return typetest.Properties{"name": home + "/secret", "owner": "0", "mode": "0640"}
		}, "/secret"},
		"looser mode": {theirs, func(home string) typetest.Properties {
			return typetest.Properties{"name": home + "/secret", "owner": "0", "group": "0", "mode": "0604"}
		}, "/secret"},
		"source": {theirs, func(home string) typetest.Properties {
			return typetest.Properties{"name": filepath.Dir(home) + "/copy", "source": home + "/secret"}
		}, "/secret"},
	} {
		t.Run(name, func(t *testing.T) {
			home := hosttest.Foreign(t)
			all(withFile("secret", "hidden", 0o600), withDir("dir", 0o700))(t, home)
			p := maps.Clone(c.base)
			maps.Copy(p, c.more(home))
			before := hosttest.Snapshot(t, filepath.Dir(home))
			err := applied(t, p)
			words := home + c.refused + " belongs to root (0), but " + home + " to user 54321: give it to user 54321, or replace it"
			if !errors.Is(err, paths.ErrUnsafe) || !strings.Contains(err.Error(), words) {
				t.Errorf("the error is %v", err)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, filepath.Dir(home))); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
		})
	}
}

// TestSystemFilesOfRootInTheDirectoryOfAnother covers what stays safe there: a
// new file in the place of the old one, and a mode that takes rights away.
func TestSystemFilesOfRootInTheDirectoryOfAnother(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	withFile("secret", "hidden\n", 0o600)(t, home)
	p := typetest.Properties{"name": home + "/secret", "content": "wanted\n", "owner": "0", "group": "0", "mode": "0600"}
	typ, env, spec := file.Type{}, testEnv(t, ""), specOf(t, p)
	state, err := typ.Status(t.Context(), env, file.Posix{}, spec)
	check(t, err)
	plan, err := typ.Plan(spec, state, false)
	check(t, err)
	if len(plan.Changes) != 1 || plan.Changes[0].From != "unreadable" || strings.Contains(plan.Changes[0].Diff, "hidden") || state.Metadata.Checksum != "" {
		t.Errorf("the plan is %+v, the checksum %q", plan.Changes, state.Metadata.Checksum)
	}
	outcome, err := typ.Apply(t.Context(), env, file.Posix{}, spec, plan)
	check(t, err)
	state, err = typ.Status(t.Context(), env, file.Posix{}, spec)
	check(t, err)
	check(t, typ.Verify(spec, outcome, state))
	holds("secret", "wanted\n", 0o600)(t, home)
	withFile("tight", "x", 0o644)(t, home)
	check(t, applied(t, typetest.Properties{"name": home + "/tight", "owner": "0", "group": "0", "mode": "0600"}))
	holds("tight", "x", 0o600)(t, home)
}

// TestSystemHugeFile has a stranger make a file without blocks that takes hours to
// read, at a path that root writes.
func TestSystemHugeFile(t *testing.T) {
	hosttest.NeedRoot(t)
	home := hosttest.Foreign(t)
	withFile("huge", "", 0o600)(t, home)
	check(t, os.Truncate(home+"/huge", 8<<40))
	hosttest.Give(t, home+"/huge")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	withFile("source", "wanted", 0o600)(t, filepath.Dir(home))
	for name, more := range map[string]typetest.Properties{"content": {"content": "wanted"}, "source": {"source": filepath.Dir(home) + "/source"}} {
		p := typetest.Properties{"name": home + "/huge", "owner": "0", "group": "0", "mode": "0600"}
		maps.Copy(p, more)
		typ, env, spec := file.Type{}, testEnv(t, ""), specOf(t, p)
		state, err := typ.Status(ctx, env, file.Posix{}, spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		plan, err := typ.Plan(spec, state, false)
		if err != nil || len(plan.Changes) == 0 || plan.Changes[0].From != "8.8 TB" {
			t.Errorf("%s: %+v, %v", name, plan.Changes, err)
		}
	}
}

// TestSystemLeasedFile has the owner of a file keep muster from reading it by a lease: it
// is replaced all the same.
func TestSystemLeasedFile(t *testing.T) {
	hosttest.NeedRoot(t)
	path := t.TempDir() + "/crontab"
	check(t, os.WriteFile(path, []byte("theirs"), 0o600))
	hosttest.Give(t, path)
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	check(t, err)
	check(t, applied(t, typetest.Properties{"name": path, "content": "wanted", "owner": "54321", "group": "54321", "mode": "0600"}))
	if text, err := os.ReadFile(path); err != nil || string(text) != "wanted" {
		t.Errorf("it holds %q: %v", text, err)
	}
}
