//go:build system

package scaffold_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/testing/hosttest"
)

// strangers are scaffolds of root with paths through app, in a directory of another user.
func strangers() map[string][]any {
	return map[string][]any{
		"purge":      {"name", "DIR/stranger/app/conf", "purge", true},
		"new target": {"name", "DIR/stranger/app/a/b"},
		"removal":    {"name", "DIR/stranger/app/conf", "ensure", "absent"},
		"post":       {"name", "DIR/stranger/app/conf", "post", post("f", "chmod 0666 {}")},
		"source":     {"name", "DIR/copy", "source", "DIR/stranger/app/conf"},
	}
}

// outside makes templates, and what a stranger wants to have changed or read.
func outside(t *testing.T, base string) {
	t.Helper()
	all(put("src/f", "new", "src/d/g", "new", "etc/conf/f 0600", "secret", "etc/conf/x 0600", "secret", "etc/conf/d/g 0600", "secret"))(t, base)
}

// strange returns a scaffold beside a directory of another user.
func strange(t *testing.T, more ...any) (s *subject, home string) {
	t.Helper()
	hosttest.NeedRoot(t)
	home = hosttest.Foreign(t)
	s = newSubject(t, func(*testing.T, string) {})
	s.dir, s.env.Scope.Dir = filepath.Dir(home), filepath.Dir(home)
	outside(t, s.dir)
	s.now(more...)

	return s, home
}

// attempt observes, plans and applies, and returns the first error.
func (s *subject) attempt() error {
	state, err := s.typ.Status(s.t.Context(), s.env, scaffold.Choria{}, s.spec)
	if err != nil {
		return err
	}
	plan, err := s.typ.Plan(s.spec, state, false)
	if err != nil || plan.Empty() {
		return err
	}
	_, err = s.typ.Apply(s.t.Context(), s.env, scaffold.Choria{}, s.spec, plan)

	return err
}

// TestSystemStrangersLink has a link of the owner of a directory lead out of it.
func TestSystemStrangersLink(t *testing.T) {
	for name, more := range strangers() {
		t.Run(name, func(t *testing.T) {
			s, home := strange(t, more...)
			link("app", s.dir+"/etc")(t, home)
			hosttest.Give(t, home+"/app")
			before := hosttest.Snapshot(t, s.dir)
			if err := s.attempt(); err == nil {
				t.Error("no error")
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, s.dir)); len(diff) > 0 {
				t.Errorf("something was changed: %q", diff)
			}
		})
	}
}

// TestSystemStrangersRace has the owner of a directory exchange app in it with a
// link all the time.
func TestSystemStrangersRace(t *testing.T) {
	applied := 0
	for name, more := range strangers() {
		t.Run(name, func(t *testing.T) {
			s, home := strange(t, more...)
			put("app/conf/f", "own", "app/conf/y", "own")(t, home)
			link("evil", s.dir+"/etc")(t, home)
			hosttest.Give(t, home+"/app", home+"/app/conf", home+"/app/conf/f", home+"/app/conf/y", home+"/evil")
			app, err := os.OpenRoot(home + "/app")
			check(t, err)
			defer app.Close()
			before := hosttest.Snapshot(t, s.dir+"/etc")
			// A run of a new target goes through app too often to be applied.
			failed, mayApply := 0, name != "new target"
			stop := hosttest.Swap(t, home+"/app", home+"/evil")
			for tries := 0; tries < 40 || tries < 5_000 && (failed == 0 || applied == 0 && mayApply); tries++ {
				// There is always something to do, in a directory of the stranger.
				check(t, errors.Join(app.WriteFile("conf/f", []byte("own"), 0o600), app.WriteFile("conf/x", []byte("own"), 0o600), app.RemoveAll("a"), os.RemoveAll(s.dir+"/copy")))
				if s.attempt() == nil {
					applied++
				} else {
					failed++
				}
				if text, err := os.ReadFile(s.dir + "/copy/x"); err == nil && string(text) == "secret" {
					t.Fatal("the secret was copied")
				}
			}
			if swaps := stop(); swaps == 0 || failed == 0 {
				t.Errorf("no race: %d swaps, %d failed", swaps, failed)
			}
			if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, s.dir+"/etc")); len(diff) > 0 {
				t.Errorf("something outside was changed: %q", diff)
			}
		})
	}
	if applied == 0 {
		t.Error("none was applied")
	}
}

// TestSystemPostRace continuously exchanges the file of post with a link to another file, as the owner of
// the directory.
func TestSystemPostRace(t *testing.T) {
	s, home := strange(t, "name", "DIR/stranger", "post", post("f", "chmod 0666 {}"))
	put("f", "own")(t, home)
	link("evil", s.dir+"/etc/conf/f")(t, home)
	before := hosttest.Snapshot(t, s.dir+"/etc")
	stop, applied := hosttest.Swap(t, home+"/f", home+"/evil"), 0
	for tries := 0; tries < 100 || tries < 5_000 && applied == 0; tries++ {
		if s.attempt() == nil {
			applied++
		}
		// The written path may have been the link.
		link("new", s.dir+"/etc/conf/f")(t, home)
		check(t, os.Rename(home+"/new", home+"/evil"))
	}
	if swaps := stop(); swaps == 0 || applied == 0 {
		t.Errorf("no race: %d swaps, %d applied", swaps, applied)
	}
	if diff := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, s.dir+"/etc")); len(diff) > 0 {
		t.Errorf("something outside was changed: %q", diff)
	}
}

// TestSystemScaffoldOfStranger manages a tree in a directory of another user. The new directories belong
// to that user, the files belong to root.
func TestSystemScaffoldOfStranger(t *testing.T) {
	s, home := strange(t, "name", "DIR/way/new/target", "purge", true, "post", post("f", `sh -c "echo more >> {}; chmod 0600 {}; pwd > $PWD/beside"`))
	link("way", "stranger")(t, s.dir)
	check(t, s.apply())
	has("new/target", "d/", "", "d/g", "new", "f 0600", "newmore\n")(t, home)
	for path, want := range map[string]uint32{"new": hosttest.Stranger, "new/target": hosttest.Stranger, "new/target/d": hosttest.Stranger, "new/target/d/g": 0, "new/target/f": 0} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(home, path), &st); err != nil || st.Uid != want {
			t.Errorf("%s belongs to %d, %v", path, st.Uid, err)
		}
	}
	s.says("afterwards", "")
	put("new/target/f", "drifted")(t, home)
	s.says("after a drift", changed(1))
	check(t, s.apply())
	has("new/target", "d/", "", "d/g", "new", "f 0600", "newmore\n")(t, home)
	s.now("name", "DIR/way/new/target", "ensure", "absent")
	check(t, s.apply())
	has("new", []string{}...)(t, home)
}

// TestSystemTemplatesOfStranger renders templates of the author of the manifest, and refuses templates
// that other users can write.
func TestSystemTemplatesOfStranger(t *testing.T) {
	for name, c := range map[string]struct {
		author paths.Author
		setup  setup
		words  string
	}{
		"the author's":          {author: paths.Author{UID: hosttest.Stranger}},
		"root's manifest":       {words: " belongs to user 54321 and has mode 0644, so others may change what muster does: chown root "},
		"another one's":         {author: paths.Author{UID: hosttest.Stranger + 1}, words: "chown root "},
		"that others may write": {author: paths.Author{UID: hosttest.Stranger}, setup: put("t/f 0646", ""), words: "/t/f belongs to user 54321 and has mode 0646, so others may change what muster does: chmod go-w "},
		"a partial":             {author: paths.Author{UID: hosttest.Stranger}, setup: put("t/_partials/p 0666", ""), words: "/t/_partials/p belongs to "},
		"that a group of both may write": {
			author: paths.Author{UID: hosttest.Stranger, GID: hosttest.Stranger, GroupWrites: true}, setup: put("t/f 0664", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, home := strange(t, "name", "DIR/out", "source", "DIR/stranger/t")
			put("t/f", "text", "t/_partials/p", "text")(t, home)
			if c.setup != nil {
				c.setup(t, home)
			}
			hosttest.Give(t, home+"/t", home+"/t/f", home+"/t/_partials", home+"/t/_partials/p")
			s.env.Scope.Author = c.author
			err := s.attempt()
			if (err == nil) != (c.words == "") || err != nil && (!errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("%v, not %q", err, c.words)
			}
			if _, there := os.Stat(s.dir + "/out"); (there == nil) != (err == nil) {
				t.Errorf("the target: %v", there)
			}
		})
	}
}
