package manifest_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestTemplatesThatOthersMayWrite checks templates that a group or all users may write, in
// manifests with and without this permission. Files that are only read are data.
func TestTemplatesThatOthersMayWrite(t *testing.T) {
	for name, in := range map[string]string{
		"template":           content(`"${ template('t') }"`),
		"jet":                content(`"${ jet('t') }"`),
		"included":           content(`"${ jet('own') }"`),
		"resources_jet_file": "muster: {resources_jet_file: t}\n",
		"read before":        content(`"${ readFile('t') + template('t') }"`),
	} {
		for mode, words := range map[fs.FileMode]string{0o644: "", 0o600: "", 0o664: "mode 0664", 0o646: "mode 0646"} {
			dir := beside(t, "t", "- file:\n    - /f: {content: x}\n", "own", `[[ include "t" ]]`)
			path := filepath.Join(dir, "t")
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			_, err := resolve(t, in, options(), manifest.Inputs{Dir: dir})
			if (err == nil) != (words == "") || err != nil && (!strings.Contains(err.Error(), words+", so others may change what muster does: chmod go-w "+path)) {
				t.Errorf("%s, %o: %v", name, mode, err)
			}
			for who, author := range map[string]paths.Author{"everybody": {Everybody: true}, "nobody else reaches it": {Private: dir}} {
				if _, err := resolve(t, in, options(), manifest.Inputs{Dir: dir, Author: author}); err != nil {
					t.Errorf("%s, %o, %s: %v", name, mode, who, err)
				}
			}
		}
	}
	dir := beside(t, "data", "x")
	if err := os.Chmod(filepath.Join(dir, "data"), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := one(t, content(`"${ readFile('data') + template('{{ readFile \"data\" }}') }"`), options(), manifest.Inputs{Dir: dir}).Content; got != "xx" {
		t.Errorf("what is only read: %q", got)
	}
	dir = beside(t, "t", "${ 1 + 1 } {{ 1 }} [[ 1 ]]", "x", "{", "own", "{{ 3 }}")
	for _, name := range []string{"t", "x"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, in := range map[string]string{
		"template":        content(`"${ template(readFile('t')) }"`),
		"replace":         content(`"${ template(replace(readFile('t'), ' ', '')) }"`),
		"split":           content(`"${ template(split(readFile('t'), ' ')[0] + '{{ 2 }}') }"`),
		"template in ccm": strings.Replace(content(`"${ template('a ' + upper(readFile('t'))) }"`), "muster:", "ccm:", 1),
		"nested in ccm":   strings.Replace(content("\"${ template(`{{ template(readFile('t')) }}`) }\""), "muster:", "ccm:", 1),
		"jet of data":     "data: {t: \"${ readFile('t') }\"}\n" + content(`"${ jet(trim(Data.t)) }"`),
	} {
		_, err := resolve(t, in, options(), manifest.Inputs{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "so others may change what muster does: chmod go-w "+filepath.Join(dir, "t")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]string{
		`template('{{ readFile \"x\" }}')`:             "{",
		`readFile('x') + template('{{ 2 }}')`:          "{2",
		`template('{{ 2 }}') + readFile('x')`:          "2{",
		`template(replace(readFile('own'), '3', '4'))`: "4",
		`readFile('x') + template('own')`:              "{3",
		`readFile('x') + jet('[[ 2 ]]')`:               "{2",
		`template(readFile('own')) + readFile('x')`:    "3{",
	} {
		if got := one(t, content(`"${ `+text+` }"`), options(), manifest.Inputs{Dir: dir}).Content; got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestFilesOfOthersInExternalData checks that a text of external data is evaluated only if the data
// contain no part of a file that others may change.
func TestFilesOfOthersInExternalData(t *testing.T) {
	dir := beside(t, "data.yaml", "data: {d: \"${ readFile('t') }\"}\n", "t", "{{ 1 }}")
	path, l := filepath.Join(dir, "t"), manifest.NewLoader(options())
	for mode, refused := range map[fs.FileMode]bool{0o644: false, 0o666: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		data, err := l.LoadData(t.Context(), filepath.Join(dir, "data.yaml"), manifest.Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		in := manifest.Inputs{Data: data.Values, Untrusted: data.Untrusted}
		if got := one(t, content(`"${ Data.d }"`), options(), in).Content; got != "{{ 1 }}" {
			t.Errorf("%o: %q", mode, got)
		}
		_, err = resolve(t, content(`"${ template(Data.d) }"`), options(), in)
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "so others may change what muster does: chmod go-w "+path) {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

// TestDataThatOthersMayWrite checks data that a group or all users may write, in manifests with and
// without this permission.
func TestDataThatOthersMayWrite(t *testing.T) {
	self := paths.Author{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	group := self
	group.GroupWrites = true
	for mode, refused := range map[fs.FileMode][3]bool{0o600: {}, 0o644: {}, 0o664: {true, false, false}, 0o646: {true, true, false}, 0o666: {true, true, false}} {
		dir := beside(t, "data.yaml", "a: \"${ 1 + 1 }\"\n")
		path := filepath.Join(dir, "data.yaml")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for i, author := range []paths.Author{self, group, {Everybody: true}} {
			data, err := manifest.NewLoader(options()).LoadData(t.Context(), path, manifest.Inputs{Author: author})
			if (err != nil) != refused[i] || (data.Values != nil) == refused[i] {
				t.Errorf("%o, %+v: %v, %v", mode, author, data, err)
			}
			if err != nil && (!errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), "so others may change what muster does: chmod go-w "+path)) {
				t.Errorf("%o: %v", mode, err)
			}
		}
	}
}

// TestAuthorOfASource checks the authors of manifests by file mode.
func TestAuthorOfASource(t *testing.T) {
	l := manifest.NewLoader(options())
	dir := beside(t, "m.yaml", "muster: {resources: []}\n")
	path := filepath.Join(dir, "m.yaml")
	own := paths.Author{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	group, all := own, own
	group.GroupWrites, all.GroupWrites, all.Everybody = true, true, true
	for mode, want := range map[fs.FileMode]paths.Author{0o600: own, 0o644: own, 0o664: group, 0o666: all} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		src, err := l.Fetch(t.Context(), path)
		if err != nil || src.Author != want {
			t.Errorf("%o: %+v, %v", mode, src, err)
		}
	}
}
