package file_test

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

func planOf(t *testing.T, dir string, spec *file.Spec) resource.Plan {
	t.Helper()
	plan, err := file.Type{}.Plan(spec, stateOf(t, testEnv(t, dir), spec), false)
	check(t, err)

	return plan
}

// TestChanges checks the properties, values and diffs of plans.
func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		setup setup
		more  typetest.Properties
		want  []model.Change
	}{
		"created": {
			more: typetest.Properties{"content": "hello\n"},
			want: []model.Change{{
				Action: "store", Message: "Would have created the file", Property: "content", From: "absent", To: "sha256 " + helloDigest,
				Diff: "--- /dev/null\n+++ DIR/x\n@@ -0,0 +1 @@\n+hello\n",
			}},
		},
		"updated": {
			setup: withFile("x", "a\nb\n", 0o600), more: typetest.Properties{"content": "a\nc"},
			want: []model.Change{
				{
					Action: "store", Message: "Would have updated the file", Property: "content",
					Diff: "--- DIR/x\n+++ DIR/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n",
				},
				{Action: "store", Property: "mode", From: "0600", To: "0644"},
			},
		},
		"binary": {
			setup: withFile("x", "a\x00b", 0o644), more: typetest.Properties{"content": "hello\n"},
			want: []model.Change{{Action: "store", Message: "Would have updated the file", Property: "content", Diff: "binary, 3 B -> 6 B, sha256 SUM -> " + helloDigest}},
		},
		"sensitive": {
			setup: withFile("x", "old password", 0o644), more: typetest.Properties{"content": "new password", "sensitive": true},
			want: []model.Change{{Action: "store", Message: "Would have updated the file", Property: "content"}},
		},
		"link": {
			setup: all(withFile("f", "kept", 0o644), withLink("x", "f")), more: typetest.Properties{"content": "hello\n"},
			want: []model.Change{{
				Action: "store", Message: "Would have replaced the symbolic link with the file", Property: "content", From: "link", To: "sha256 " + helloDigest,
				Diff: "--- /dev/null\n+++ DIR/x\n@@ -0,0 +1 @@\n+hello\n",
			}},
		},
		"attributes": {
			setup: withFile("x", "kept", 0o4600),
			want:  []model.Change{{Action: "set_attributes", Message: "Would have updated attributes", Property: "mode", From: "4600", To: "0644"}},
		},
		"directory": {
			setup: withDir("x", 0o700), more: typetest.Properties{"ensure": "directory", "mode": "0750"},
			want: []model.Change{{Action: "create_directory", Message: "Would have updated attributes", Property: "mode", From: "0700", To: "0750"}},
		},
		"removed": {
			setup: withFile("x", "1", 0o644), more: typetest.Properties{"ensure": "absent"},
			want: []model.Change{{Action: "remove", Message: "Would have removed the file", Property: "ensure", From: "present", To: "absent"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.setup != nil {
				c.setup(t, dir)
			}
			got := planOf(t, dir, specOf(t, owned(t, "x", c.more)(dir))).Changes
			if len(got) != len(c.want) {
				t.Fatalf("%+v", got)
			}
			for i, want := range c.want {
				want.Diff = strings.ReplaceAll(want.Diff, "DIR", dir)
				want.Diff = strings.ReplaceAll(want.Diff, "sha256 SUM", got[i].From)
				// The contract tests check the digest of the old content; this test checks that it is present.
				if want.Property == "content" && strings.HasPrefix(got[i].From, "sha256 ") {
					want.From, want.To = got[i].From, got[i].To
				}
				if !reflect.DeepEqual(got[i], want) {
					t.Errorf("change %d is\n%+v, not\n%+v", i, got[i], want)
				}
			}
		})
	}
}

// TestDiffBounds checks that a long diff is cut at a line, with a note.
func TestDiffBounds(t *testing.T) {
	for name, c := range map[string]struct{ line, left string }{
		"lines": {line: "a\n", left: "… 903 more lines"},
		"bytes": {line: strings.Repeat("b", 999) + "\n", left: "… 28 more lines"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			count := 1100
			if len(c.line) > 10 {
				count = 60
			}
			diff := planOf(t, dir, specOf(t, owned(t, "x", typetest.Properties{"content": strings.Repeat(c.line, count)})(dir))).Changes[0].Diff
			if !strings.Contains(diff, c.left) || len(diff) > 33<<10 || !strings.HasSuffix(diff, "were left out\n") {
				t.Errorf("%d bytes, ends with %q", len(diff), diff[max(0, len(diff)-80):])
			}
		})
	}
}

// TestDiffShowsControlCharacters checks that a diff cannot steer a terminal,
// and that a changed line end is seen.
func TestDiffShowsControlCharacters(t *testing.T) {
	dir := t.TempDir()
	withFile("x", "one\ntwo\n", 0o644)(t, dir)
	diff := planOf(t, dir, specOf(t, owned(t, "x", typetest.Properties{"content": "one\r\n\x1b[2Jtwo\u202e\u200b\u00a0\ufeff\u00e9\U000e0001\n\ttab\n"})(dir))).Changes[0].Diff
	if !strings.Contains(diff, "+one\\r\n+\\x1b[2Jtwo\\u202e\\u200b\\u00a0\\ufeff\u00e9\\U000e0001\n+\ttab\n") {
		t.Errorf("%q", diff)
	}
}

// TestSourceChanged checks that a source that changes between the look and the
// copy, or during it, is noticed.
func TestSourceChanged(t *testing.T) {
	dir := t.TempDir()
	withFile("src", "planned", 0o644)(t, dir)
	typ, env := file.Type{}, testEnv(t, dir)
	spec := specOf(t, owned(t, "x", typetest.Properties{"source": "src"})(dir))
	plan, err := typ.Plan(spec, stateOf(t, env, spec), false)
	check(t, err)
	withFile("src", "changed meanwhile", 0o644)(t, dir)
	outcome, err := typ.Apply(t.Context(), env, file.Posix{}, spec, plan)
	check(t, err)
	verify := fileType().Verify
	if err := verify(spec, outcome, stateOf(t, env, spec)); err == nil || !strings.Contains(err.Error(), "the source changed while it was copied") {
		t.Errorf("before the copy: %v", err)
	}
	withFile("src", "changed afterwards", 0o644)(t, dir)
	if err := verify(spec, outcome, stateOf(t, env, spec)); err == nil || !strings.Contains(err.Error(), "still different: content is sha256 ") {
		t.Errorf("after the copy: %v", err)
	}
}

func TestRelations(t *testing.T) {
	content := ""
	for name, c := range map[string]struct {
		spec file.Spec
		want resource.Relations
	}{
		"file": {
			spec: file.Spec{Common: model.Common{Name: "/opt/app/conf/x", Ensure: "present"}, Owner: "app", Group: "web", Mode: "0644", Content: &content},
			want: resource.Relations{
				Provides: resource.Provides("path:/opt/app/conf/x"),
				Needs:    resource.Needs("path:/opt/app/conf", "path:/opt/app", "path:/opt", "user:app", "path:/etc/passwd", "group:web", "path:/etc/group"),
			},
		},
		"source, numbers": {
			spec: file.Spec{Common: model.Common{Name: "/x", Ensure: "present"}, Owner: "0", Group: "12", Source: "/srv/./f"},
			want: resource.Relations{Provides: resource.Provides("path:/x"), Needs: []resource.Need{{What: "path:/srv/f", ReadsContent: true}}},
		},
		"validated": {
			spec: file.Spec{Common: model.Common{Name: "/x", Ensure: "present"}, Owner: "0", Group: "0", Content: &content, Validator: "true {}"},
			want: resource.Relations{Provides: resource.Provides("path:/x")},
		},
		"relative source": {
			spec: file.Spec{Common: model.Common{Name: "/x", Ensure: "present"}, Owner: "0", Group: "0", Source: "f"},
			want: resource.Relations{Provides: resource.Provides("path:/x")},
		},
		"directory": {
			spec: file.Spec{Common: model.Common{Name: "/opt/app/conf", Ensure: "directory"}, Owner: "0", Group: "0", Mode: "0755"},
			want: resource.Relations{
				Provides: []resource.Provision{{What: "path:/opt/app/conf"}, {What: "path:/opt/app", Implicit: true}, {What: "path:/opt", Implicit: true}},
				Needs:    resource.Needs("path:/opt/app", "path:/opt"),
			},
		},
		"absent": {
			spec: file.Spec{Common: model.Common{Name: "/a/b", Ensure: "absent"}},
			want: resource.Relations{Provides: resource.Provides("emptied:/a"), Removes: []string{"path:/a/b"}, Needs: []resource.Need{{What: "emptied:/a/b", All: true}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.WaitsForDiskOnly = c.spec.Validator == ""
			if got := fileType().Relations(&c.spec); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, not %+v", got, c.want)
			}
		})
	}
}

// TestApplyRefuses checks what Apply does when the machine changed since the look.
func TestApplyRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before, meanwhile setup
		properties        func(string) typetest.Properties
		says              string
		after             setup
	}{
		"a link instead of the file": {
			before: withFile("x", "1", 0o600), properties: owned(t, "x", nil), says: "symbolic link",
			meanwhile: func(t *testing.T, dir string) {
				withFile("t", "kept", 0o600)(t, dir)
				check(t, hosttest.New(t).Remove(filepath.Join(dir, "x")))
				withLink("x", "t")(t, dir)
			},
			after: holds("t", "kept", 0o600),
		},
		"a directory instead of nothing": {
			before: withDir("d", 0o755), properties: owned(t, "x", typetest.Properties{"content": "a"}), says: "x",
			meanwhile: withFile("x/kept", "1", 0o644), after: holds("x/kept", "1", 0o644),
		},
		"an entry in the empty directory": {
			before: withDir("x", 0o755), properties: absent("x", nil), says: "force: true is required",
			meanwhile: withFile("x/kept", "1", 0o644), after: holds("x/kept", "1", 0o644),
		},
		"no source any more": {
			before: withFile("src", "1", 0o644), properties: owned(t, "x", typetest.Properties{"source": "src"}), says: "src: file does not exist (correct `source`",
			meanwhile: func(t *testing.T, dir string) { check(t, hosttest.New(t).Remove(filepath.Join(dir, "src"))) },
			after:     isGone("x"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.before(t, dir)
			spec, env := specOf(t, c.properties(dir)), testEnv(t, dir)
			plan := planOf(t, dir, spec)
			c.meanwhile(t, dir)
			_, err := file.Type{}.Apply(t.Context(), env, file.Posix{}, spec, plan)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			c.after(t, dir)
		})
	}
}
