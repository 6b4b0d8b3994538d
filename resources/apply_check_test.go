package resources_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
)

// check checks root.yaml as a push does, and gives the files that travel with it.
func (w *world) check(dir string) (*manifest.Checked, []string, error) {
	w.t.Helper()
	doc, err := manifest.Parse(filepath.Join(w.dir, "root.yaml"), []byte(w.read("root.yaml")))
	if err != nil {
		return nil, nil, err
	}
	checked, err := manifest.NewLoader(manifest.Options{Types: resources.All()}).Check(w.t.Context(), doc, manifest.Inputs{Dir: dir})
	if err != nil {
		return nil, nil, err
	}
	var files []string
	for _, f := range checked.Files {
		files = append(files, f.Path+" "+w.short(f.Pos.File))
	}

	return checked, files, nil
}

// TestCheckFindsChildren finds children and the files beside them, also where what a child gets
// depends on the node, and leaves alone those that are the node's.
func TestCheckFindsChildren(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster:
  resources:
    - apply: [sub/child.yaml: {data: {host: "${ Facts.hostname }"}}, gone.yaml: {}, $DIR/node.yaml: {}]
    - exec: [x: {command: /bin/true, require: [exec#of-the-node]}]
-- sub/child.yaml --
muster:
  resources:
    - file: [$DIR/a: {source: files/a}, $DIR/b: {content: "${ readFile('b') } ${ Data.host }"}]
    - apply: [deeper/grandchild.yaml: {}, ../again.yaml: {control: {if: "false"}}]
-- sub/deeper/grandchild.yaml --
muster: {resources: [{file: [$DIR/c: {source: c}]}]}
-- node.yaml --
this is not for us
`)
	_, files, err := w.check(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "sub/child.yaml root.yaml, sub/files/a sub/child.yaml, sub/b sub/child.yaml, sub/deeper/grandchild.yaml sub/child.yaml, sub/deeper/c sub/deeper/grandchild.yaml, gone.yaml root.yaml"
	if got := strings.Join(files, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// What comes from standard input has nothing beside it that could be read.
	if _, files, err = w.check(""); err != nil || strings.Join(files, ", ") != "sub/child.yaml root.yaml, gone.yaml root.yaml" {
		t.Error(files, err)
	}
}

// TestCheckOfChildren finds the problems of a child, independent of the node.
func TestCheckOfChildren(t *testing.T) {
	w := newWorld(t, `
-- root.yaml --
muster: {resources: [{apply: [child.yaml: {data: {a: "${ Facts.x }"}, allow_apply: false}]}]}
-- child.yaml --
muster: {resources: [{file: [/a: {mood: x}]}, {apply: [c.yaml: {}]}]}
`)
	_, _, err := w.check(w.dir)
	if err == nil || !strings.Contains(err.Error(), "child.yaml:1:35: unknown property `mood`") || !strings.Contains(err.Error(), "cannot include another") {
		t.Error(err)
	}
	w.write("root.yaml", "muster: {resources: [{apply: [child.yaml: {}]}]}")
	w.write("child.yaml", "muster: {resources: [{exec: [x: {command: /bin/true, creates: /x}]}]}")
	if _, _, err := w.check(w.dir); err != nil {
		t.Error(err)
	}
}
