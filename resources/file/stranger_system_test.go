//go:build system

package file_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// strangers are the resources of root below a directory of another user, each with a path that goes
// through app in it.
func strangers(home string) map[string]typetest.Properties {
	root := func(more typetest.Properties) typetest.Properties {
		p := typetest.Properties{"owner": "54321", "group": "54321", "mode": "0666"}
		maps.Copy(p, more)
		return p
	}
	return map[string]typetest.Properties{
		"content":        root(typetest.Properties{"name": home + "/app/passwd", "content": "stranger"}),
		"new file":       root(typetest.Properties{"name": home + "/app/new", "content": "stranger"}),
		"attributes":     root(typetest.Properties{"name": home + "/app/passwd"}),
		"directory":      root(typetest.Properties{"name": home + "/app/conf", "ensure": "directory"}),
		"new directory":  root(typetest.Properties{"name": home + "/app/a/b/c", "ensure": "directory"}),
		"removal":        {"name": home + "/app/passwd", "ensure": "absent"},
		"forced removal": {"name": home + "/app/conf", "ensure": "absent", "force": true},
		"source":         root(typetest.Properties{"name": filepath.Dir(home) + "/copy", "source": home + "/app/passwd"}),
	}
}

// TestSystemBelowStrangers covers resources that root still manages in directories of other users: the
// keys of a user, and the files of a service two levels below.
func TestSystemBelowStrangers(t *testing.T) {
	hosttest.NeedRoot(t)
	belongs := func(uid uint32, names ...string) setup {
		return func(t *testing.T, dir string) {
			t.Helper()
			for _, name := range names {
				if item := hosttest.Snapshot(t, dir)[name]; item.UID != uid {
					t.Errorf("%s belongs to %d, not %d", name, item.UID, uid)
				}
			}
		}
	}
	give := func(names ...string) setup {
		return func(t *testing.T, dir string) {
			t.Helper()
			for _, name := range names {
				hosttest.Give(t, filepath.Join(dir, name))
			}
		}
	}
	ann := all(withDir("ann/.ssh", 0o700), withLink("ann/own", ".ssh"), give("ann", "ann/.ssh", "ann/own"))
	keys := all(ann, withFile("ann/.ssh/authorized_keys", "old", 0o600), give("ann/.ssh/authorized_keys"))
	postgres := all(withDir("pg/15/main", 0o700), give("pg", "pg/15", "pg/15/main"))
	of := func(name string, more typetest.Properties) func(string) typetest.Properties {
		p := typetest.Properties{"owner": hosttest.Stranger, "group": hosttest.Stranger, "mode": "0600"}
		maps.Copy(p, more)
		return owned(t, name, p)
	}
	key := of("ann/.ssh/authorized_keys", typetest.Properties{"content": "key"})
	typetest.Run(t, typetest.Config{Type: fileType(), ReadOnly: typetest.Only("getent "), Cases: []typetest.Case{
		{Name: "keys, new", Setup: ann, Properties: key, Message: "Would have created the file", Check: all(holds("ann/.ssh/authorized_keys", "key", 0o600), belongs(hosttest.Stranger, "ann/.ssh/authorized_keys"))},
		{Name: "keys, other", Setup: keys, Properties: key, Message: "Would have updated the file", Check: holds("ann/.ssh/authorized_keys", "key", 0o600)},
		{Name: "keys, validated in a private directory", Setup: keys, Properties: of("ann/.ssh/authorized_keys", typetest.Properties{"content": "key", "validate": "sh -c 'test `stat -c %a .` = 700 && grep -q key {}'"}), Message: "Would have updated the file, validated first", Check: all(holds("ann/.ssh/authorized_keys", "key", 0o600), belongs(hosttest.Stranger, "ann/.ssh/authorized_keys"))},
		{Name: "keys, attributes", Setup: keys, Properties: of("ann/.ssh/authorized_keys", typetest.Properties{"mode": "0640"}), Message: "Would have updated attributes", Check: holds("ann/.ssh/authorized_keys", "old", 0o640)},
		{Name: "keys, removed", Setup: keys, Properties: absent("ann/.ssh/authorized_keys", nil), Message: "Would have removed the file", Check: isGone("ann/.ssh/authorized_keys")},
		{Name: "keys, by ann's link to her own", Setup: keys, Properties: of("ann/own/authorized_keys", typetest.Properties{"content": "key"}), Message: "Would have updated the file", Check: holds("ann/.ssh/authorized_keys", "key", 0o600)},
		{Name: "keys, as a source", Setup: keys, Properties: func(dir string) typetest.Properties {
			return of("copy", typetest.Properties{"source": dir + "/ann/own/authorized_keys"})(dir)
		}, Message: "Would have created the file", Check: holds("copy", "old", 0o600)},
		{Name: "two levels below", Setup: postgres, Properties: of("pg/15/main/conf", typetest.Properties{"content": "x"}), Message: "Would have created the file", Check: holds("pg/15/main/conf", "x", 0o600)},
		{Name: "a file of root two levels below", Setup: postgres, Properties: owned(t, "pg/15/main/conf", typetest.Properties{"content": "x"}), Message: "Would have created the file", Check: all(holds("pg/15/main/conf", "x", 0o644), belongs(0, "pg/15/main/conf"))},
		{Name: "a directory with its parents", Setup: postgres, Properties: of("pg/a/b/c", typetest.Properties{"ensure": "directory", "mode": "0700"}), Message: "Would have created directory", Check: belongs(hosttest.Stranger, "pg/a", "pg/a/b", "pg/a/b/c")},
		{Name: "a tree, removed", Setup: postgres, Properties: absent("pg/15", typetest.Properties{"force": true}), Message: "Would have recursively removed the directory", Check: isGone("pg/15")},
		{Name: "below a link of root", Setup: all(postgres, withLink("var", "pg/15")), Properties: of("var/main/conf", typetest.Properties{"content": "x"}), Message: "Would have created the file", Check: holds("pg/15/main/conf", "x", 0o600)},
		{Name: "in a directory of root in ann's", Setup: all(ann, withDir("ann/root", 0o755)), Properties: of("ann/root/x", typetest.Properties{"content": "x"}), Error: "unsafe path", Check: isGone("ann/root/x")},
	}})
}

// outside makes what a stranger wants to have changed or read.
func outside(t *testing.T, base string) {
	t.Helper()
	all(withDir("etc", 0o755), withFile("etc/passwd", "secret", 0o600), withDir("etc/conf", 0o755), withFile("etc/conf/x", "secret", 0o600))(t, base)
}

// applied observes, plans and applies, and returns the first error.
func applied(t *testing.T, p typetest.Properties) error {
	t.Helper()
	typ, spec, env := file.Type{}, specOf(t, p), testEnv(t, "")
	state, err := typ.Status(t.Context(), env, file.Posix{}, spec)
	if err != nil {
		return err
	}
	plan, err := typ.Plan(spec, state, false)
	if err != nil || plan.Empty() {
		return err
	}
	_, err = typ.Apply(t.Context(), env, file.Posix{}, spec, plan)

	return err
}

// TestSystemStrangersLink has a link of the owner of a directory lead out of it.
func TestSystemStrangersLink(t *testing.T) {
	hosttest.NeedRoot(t)
	for name := range strangers("") {
		t.Run(name, func(t *testing.T) {
			home := hosttest.Foreign(t)
			base := filepath.Dir(home)
			outside(t, base)
			withLink("app", base+"/etc")(t, home)
			hosttest.Give(t, home+"/app")
			before := hosttest.Snapshot(t, base)
			err := applied(t, strangers(home)[name])
			if err == nil || !strings.Contains(err.Error(), home+"/app is a link of user 54321 and leads to "+base+"/etc, which belongs to root (0)") {
				t.Errorf("the error is %v", err)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, base)); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
		})
	}
}

// TestSystemStrangersRace has the owner of a directory exchange app in it with a
// link all the time.
func TestSystemStrangersRace(t *testing.T) {
	hosttest.NeedRoot(t)
	for name := range strangers("") {
		t.Run(name, func(t *testing.T) {
			home := hosttest.Foreign(t)
			base := filepath.Dir(home)
			outside(t, base)
			withLink("evil", base+"/etc")(t, home)
			withDir("app", 0o755)(t, home)
			hosttest.Give(t, home+"/app", home+"/evil")
			app, err := os.OpenRoot(home + "/app")
			check(t, err)
			defer app.Close()
			etc := hosttest.Snapshot(t, base+"/etc")
			var done, failed int
			stop := hosttest.Swap(t, home+"/app", home+"/evil")
			for tries := 0; tries < 60 || tries < 5_000 && (done == 0 || failed == 0); tries++ {
				prepare(t, app)
				if applied(t, strangers(home)[name]) == nil {
					done++
				} else {
					failed++
				}
				if copied, err := os.ReadFile(base + "/copy"); err == nil && string(copied) == "secret" {
					t.Fatal("the secret was copied")
				}
			}
			if swaps := stop(); swaps == 0 || done == 0 || failed == 0 {
				t.Errorf("no race: %d swaps, %d applied, %d failed", swaps, done, failed)
			}
			if diff := hosttest.SnapshotDiff(etc, hosttest.Snapshot(t, base+"/etc")); len(diff) > 0 {
				t.Errorf("something outside was changed: %q", diff)
			}
		})
	}
}

// prepare makes what the changes need in the directory of the stranger.
func prepare(t *testing.T, app *os.Root) {
	t.Helper()
	check(t, app.RemoveAll("a"))
	check(t, app.RemoveAll("new"))
	check(t, app.MkdirAll("conf", 0o755))
	check(t, app.WriteFile("passwd", []byte("own"), 0o600))
	check(t, app.Lchown("conf", hosttest.Stranger, hosttest.Stranger))
	check(t, app.Lchown("passwd", hosttest.Stranger, hosttest.Stranger))
}
