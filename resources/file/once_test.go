package file_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// onceCases are files with replace: false.
func onceCases(t *testing.T) []typetest.Case {
	const created, attributes = "Would have created the file", "Would have updated attributes"
	once := owned(t, "x", typetest.Properties{"content": "new\n", "replace": false})
	copied := owned(t, "x", typetest.Properties{"source": "f", "replace": false})

	return []typetest.Case{
		{Name: "once, absent", Properties: once, Message: created, Check: holds("x", "new\n", 0o644)},
		{Name: "once, other content", Setup: withFile("x", "old\n", 0o644), Properties: once, Check: holds("x", "old\n", 0o644)},
		{Name: "once, other content and mode", Setup: withFile("x", "old\n", 0o600), Properties: once, Message: attributes, Check: holds("x", "old\n", 0o644)},
		{Name: "once, empty file", Setup: withFile("x", "", 0o644), Properties: once, Check: holds("x", "", 0o644)},
		{Name: "once, link", Setup: all(withFile("f", "kept", 0o600), withLink("x", "f")), Properties: once, Error: "x is a symbolic link: with replace: false it stays", Check: holds("f", "kept", 0o600)},
		{Name: "once, directory", Setup: withDir("x", 0o755), Properties: once, Error: "path exists as a directory"},
		{Name: "once, source", Setup: withFile("f", "from\n", 0o600), Properties: copied, Message: created, Check: holds("x", "from\n", 0o644)},
		{Name: "once, source is gone", Setup: withFile("x", "old\n", 0o644), Properties: copied, Check: holds("x", "old\n", 0o644)},
		{Name: "once, removed by hand", Properties: once, Message: created, Drift: func(t testing.TB, dir string) { check(t, os.Remove(filepath.Join(dir, "x"))) }},
		{Name: "replace: true", Setup: withFile("x", "old\n", 0o644), Properties: owned(t, "x", typetest.Properties{"content": "new\n", "replace": true}), Message: "Would have updated the file", Check: holds("x", "new\n", 0o644)},
	}
}

// parentsCases are files with parents.
func parentsCases(t *testing.T) []typetest.Case {
	const created = "Would have created the file"
	deep := func(more typetest.Properties) func(string) typetest.Properties {
		p := typetest.Properties{"content": "new\n", "parents": true}
		for key, value := range more {
			p[key] = value
		}
		return owned(t, "a/b/x", p)
	}

	return []typetest.Case{
		{Name: "parents, none there", Properties: deep(nil), Message: created, Check: all(holds("a/b/x", "new\n", 0o644), isDir("a", 0o755), isDir("a/b", 0o755))},
		{Name: "parents, some there", Setup: withDir("a", 0o700), Properties: deep(nil), Message: created, Check: all(holds("a/b/x", "new\n", 0o644), isDir("a", 0o700))},
		{Name: "parents, all there", Setup: withFile("a/b/x", "new\n", 0o644), Properties: deep(nil)},
		{Name: "parents, without content", Properties: deep(typetest.Properties{"content": nil}), Message: "Would have created an empty file with requested attributes", Check: holds("a/b/x", "", 0o644)},
		{Name: "parents, a file above", Setup: withFile("a", "kept", 0o644), Properties: deep(nil), Error: "/a is not a directory", Check: holds("a", "kept", 0o644)},
		{Name: "parents, of a directory", Properties: deep(typetest.Properties{"content": nil, "ensure": "directory"}), Message: "Would have created directory", Check: isDir("a/b/x", 0o755)},
	}
}

// specialCases are files and directories with setuid, setgid and sticky.
func specialCases(t *testing.T) []typetest.Case {
	const created, updated, attributes = "Would have created the file", "Would have updated the file", "Would have updated attributes"
	powerful := func(more typetest.Properties) func(string) typetest.Properties {
		p := typetest.Properties{"content": "#!/bin/sh\n", "mode": "0755", "setuid": true, "setgid": true}
		for key, value := range more {
			p[key] = value
		}
		return owned(t, "x", p)
	}
	shared := func(more typetest.Properties) func(string) typetest.Properties {
		p := typetest.Properties{"ensure": "directory", "mode": "0775"}
		for key, value := range more {
			p[key] = value
		}
		return owned(t, "x", p)
	}

	return []typetest.Case{
		{Name: "setuid and setgid, absent", Properties: powerful(nil), Message: created, Check: holds("x", "#!/bin/sh\n", 0o6755)},
		{Name: "setuid and setgid, the same", Setup: withFile("x", "#!/bin/sh\n", 0o6755), Properties: powerful(nil)},
		{Name: "setuid and setgid, without", Setup: withFile("x", "#!/bin/sh\n", 0o755), Properties: powerful(nil), Message: updated, Check: holds("x", "#!/bin/sh\n", 0o6755)},
		{Name: "setuid only, both there", Setup: withFile("x", "#!/bin/sh\n", 0o6755), Properties: powerful(typetest.Properties{"setgid": false}), Message: updated, Check: holds("x", "#!/bin/sh\n", 0o4755)},
		{Name: "setuid, validated", Properties: powerful(typetest.Properties{"validate": `sh -c 'test ! -u "$1" && "$1"' sh {}`}), Message: created + ", validated first", Check: holds("x", "#!/bin/sh\n", 0o6755)},
		{Name: "setuid, source", Setup: withFile("f", "from", 0o644), Properties: powerful(typetest.Properties{"content": nil, "source": "f"}), Message: created, Check: holds("x", "from", 0o6755)},
		{Name: "setuid, source of everybody", Setup: withFile("f", "from", 0o646), Properties: powerful(typetest.Properties{"content": nil, "source": "f"}), Error: "/f: others than root may write to it, so its copy gets no setuid or setgid", Check: isGone("x")},
		{Name: "setuid, source in a directory of everybody", Setup: all(openTo("o"), withFile("o/f", "from", 0o644)), Properties: powerful(typetest.Properties{"content": nil, "source": "o/f"}), Error: "everybody may write to", Check: isGone("x")},
		{Name: "setuid, in a directory of everybody", Setup: openTo("."), Properties: powerful(nil), Error: "setuid and setgid: unsafe path: everybody may write to", Check: isGone("x")},
		{Name: "sticky file", Setup: withFile("x", "kept", 0o644), Properties: owned(t, "x", typetest.Properties{"sticky": true}), Message: attributes, Check: holds("x", "kept", 0o1644)},
		{Name: "file with bits, unset", Setup: withFile("x", "kept", 0o7644), Properties: owned(t, "x", nil), Message: attributes, Check: holds("x", "kept", 0o644)},
		{Name: "setgid directory, absent", Properties: shared(typetest.Properties{"setgid": true}), Message: "Would have created directory", Check: isDir("x", 0o2775)},
		{Name: "setgid directory, without", Setup: withDir("x", 0o1775), Properties: shared(typetest.Properties{"setgid": true}), Message: attributes, Check: isDir("x", 0o3775)},
		{Name: "setgid directory, the same", Setup: withDir("x", 0o3775), Properties: shared(typetest.Properties{"setgid": true})},
		{Name: "setgid directory, off", Setup: withDir("x", 0o3775), Properties: shared(typetest.Properties{"setgid": false}), Message: attributes, Check: isDir("x", 0o1775)},
		{Name: "sticky directory", Properties: shared(typetest.Properties{"sticky": true, "mode": "0777"}), Message: "Would have created directory", Check: isDir("x", 0o1777)},
		{Name: "sticky directory, changed by hand", Properties: shared(typetest.Properties{"sticky": true}), Message: "Would have created directory", Drift: func(t testing.TB, dir string) {
			check(t, os.Chmod(filepath.Join(dir, "x"), 0o775))
		}},
		{Name: "sticky directory, a link to one", Setup: all(withDir("d", 0o775), withLink("x", "d")), Properties: shared(typetest.Properties{"sticky": true}), Error: "mode is 0775, not 1775", Check: isDir("d", 0o775)},
	}
}

func TestContractOfNewProperties(t *testing.T) {
	cases := append(onceCases(t), parentsCases(t)...)
	typetest.Run(t, typetest.Config{Type: fileType(), ReadOnly: typetest.Only("getent "), Cases: append(cases, specialCases(t)...)})
}

// TestParentsAreRemovedAfterAFailure: a file that is refused leaves no directories.
func TestParentsAreRemovedAfterAFailure(t *testing.T) {
	dir := t.TempDir()
	env := testEnv(t, dir)
	spec := specOf(t, owned(t, "a/b/x", typetest.Properties{"content": "new", "parents": true, "validate": "false {}"})(dir))
	plan, err := (file.Type{}).Plan(spec, stateOf(t, env, spec), false)
	check(t, err)
	if _, err = (file.Type{}).Apply(t.Context(), env, file.Posix{}, spec, plan); err == nil || !strings.Contains(err.Error(), "validate: ") {
		t.Errorf("%v", err)
	}
	isGone("a")(t, dir)
}

func TestValidateNewProperties(t *testing.T) {
	for name, c := range map[string]struct {
		properties typetest.Properties
		problem    string
	}{
		"mode with setgid":             {base(typetest.Properties{"mode": "2775"}), `invalid mode "2775": it exceeds 0777, setuid, setgid and sticky are not set by mode (write mode: "0775" and setgid: true)`},
		"mode with all bits":           {base(typetest.Properties{"mode": "0o7755"}), `(write mode: "0755", setuid: true, setgid: true and sticky: true)`},
		"symbolic mode":                {base(typetest.Properties{"mode": "u=rwx,g=rx"}), `invalid mode "u=rwx,g=rx": it is not octal (write mode: "0750")`},
		"symbolic mode of all":         {base(typetest.Properties{"mode": "a=rx,u=rwx"}), `(write mode: "0755")`},
		"symbolic mode that adds":      {base(typetest.Properties{"mode": "u+x"}), `it is not octal (write permissions in octal, for example "0644")`},
		"replace without content":      {base(typetest.Properties{"replace": false}), "`replace` requires managed content (set content or source)"},
		"replace of a directory":       {base(typetest.Properties{"replace": true, "ensure": "directory"}), "a directory has no `replace`"},
		"setuid without content":       {base(typetest.Properties{"setuid": true}), "`setuid` of a file requires managed content (set content or source, without replace: false)"},
		"setgid, written once":         {base(typetest.Properties{"setgid": true, "content": "x", "replace": false}), "`setgid` of a file requires managed content"},
		"setuid with write for others": {base(typetest.Properties{"setuid": true, "content": "x", "mode": "0777"}), "`setuid` of a file requires a mode without write for group and others (write mode: \"0755\")"},
		"setuid: false":                {base(typetest.Properties{"setuid": false, "mode": "0666"}), ""},
		"setgid of a directory":        {base(typetest.Properties{"setgid": true, "mode": "0777", "ensure": "directory"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := resource.Decode(fileType(), typetest.Value(c.properties), model.Position{})
			if c.problem == "" && len(problems) > 0 || c.problem != "" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), c.problem)) {
				t.Errorf("%v, not %s", problems, c.problem)
			}
		})
	}
	set := true
	s := file.Spec{Common: model.Common{Name: "/x", Ensure: "absent"}, Replace: &set, Parents: true, SetUID: &set, SetGID: &set, Sticky: &set}
	var named []string
	for _, w := range s.Warnings() {
		named = append(named, w.Property)
	}
	if got := strings.Join(named, " "); got != "replace parents setuid setgid sticky" {
		t.Errorf("without effect are %q", got)
	}
}

// TestRelationsOfNewProperties: a file that is written once waits for its source, but is not compared with it.
func TestRelationsOfNewProperties(t *testing.T) {
	once := false
	s := &file.Spec{Common: model.Common{Name: "/a/x", Ensure: "present"}, Owner: "0", Group: "0", Mode: "0644", Source: "/srv/f", Replace: &once, Parents: true}
	want := resource.Relations{
		Provides: append(resource.Provides("path:/a/x"), resource.ProvidesAbove("/a/x")...), Needs: resource.Needs("path:/a", "path:/srv/f"),
		SkipIfExists: []string{"path:/a/x"}, WaitsForDiskOnly: true,
	}
	typ := fileType()
	if got := typ.Relations(s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
	if got := typ.Watches(file.Posix{}, s); !reflect.DeepEqual(got, []watch.Point{{Kind: watch.Path, Name: "/a/x"}}) {
		t.Errorf("watched is %v", got)
	}
	if got := typ.Claims(s); !reflect.DeepEqual(got, []resource.Claim{{Kind: resource.ClaimAttributes, Path: "/a/x"}}) {
		t.Errorf("claimed is %v", got)
	}
}
