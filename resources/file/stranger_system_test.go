//go:build system

package file_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/file/posix"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// strangers are what a manifest of root asks for below a directory that belongs
// to somebody else, each by a path that goes through app in it.
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

// outside makes what a stranger wants to have changed or read.
func outside(t *testing.T, base string) {
	t.Helper()
	all(withDir("etc", 0o755), withFile("etc/passwd", "secret", 0o600), withDir("etc/conf", 0o755), withFile("etc/conf/x", "secret", 0o600))(t, base)
}

// applied observes, plans and applies, and returns the first error.
func applied(t *testing.T, p typetest.Properties) error {
	t.Helper()
	typ, spec, env := file.New(posix.Provider{}), specOf(t, p), testEnv(t, "")
	state, err := typ.Status(t.Context(), env, posix.Provider{}, spec)
	if err != nil {
		return err
	}
	plan, err := typ.Plan(spec, state, false)
	if err != nil || plan.Empty() {
		return err
	}
	_, err = typ.Apply(t.Context(), env, posix.Provider{}, spec, plan)

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
			for range 100 {
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
}
