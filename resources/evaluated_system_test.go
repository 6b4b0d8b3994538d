//go:build system

package resources_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/hosttest"
)

const evaluatedSecret = "the secret of root"

// evaluated are manifests that have a file evaluated, which is one of files. Every
// one of these writes what only root can read to $DIR/out.
func evaluated() map[string]string {
	return map[string]string{
		"template":           `file: [$DIR/out: {content: "${ template('$DIR/stranger/go.tmpl') }"}]`,
		"jet":                `file: [$DIR/out: {content: "${ jet('$DIR/stranger/text.jet') }"}]`,
		"included by jet":    `file: [$DIR/out: {content: "${ jet('$DIR/own.jet') }"}]`,
		"included manifest":  `apply: [$DIR/stranger/child.yaml: {}]`,
		"scaffold":           `scaffold: [$DIR/out: {engine: go, source: $DIR/stranger/src}]`,
		"link":               `file: [$DIR/out: {content: "${ template('$DIR/link') }"}]`,
		"relative":           `file: [$DIR/out: {content: "${ template('stranger/go.tmpl') }"}]`,
		"beside its own":     `file: [$DIR/out: {content: "${ template('$DIR/stranger/own/go.tmpl') }"}]`,
		"read and evaluated": `file: [$DIR/out: {content: "${ readFile('$DIR/stranger/go.tmpl') + template('$DIR/stranger/go.tmpl') }"}]`,
	}
}

// strangersFiles has files below stranger, which are given to that user.
const strangersFiles = `
-- own.jet --
[[ include "$DIR/stranger/text.jet" ]]
-- stranger/go.tmpl --
{{ readFile "$DIR/secret" }}
-- stranger/own/go.tmpl --
{{ readFile "$DIR/secret" }}
-- stranger/text.jet --
[[ readFile("$DIR/secret") ]]
-- stranger/list.jet --
- file:
    - $DIR/out: {content: "[[ readFile("$DIR/secret") ]]"}
-- stranger/child.yaml --
muster:
  resources:
    - file: [$DIR/out: {content: "${ readFile('$DIR/secret') }"}]
-- stranger/src/f --
{{ readFile "$DIR/secret" }}
`

// newStrangersWorld has a manifest of root and files that belong to a stranger.
func newStrangersWorld(t *testing.T, root string) *world {
	t.Helper()
	hosttest.NeedRoot(t)
	w := newWorld(t, strangersFiles)
	if err := errors.Join(os.Chmod(w.dir, 0o755), os.Symlink("stranger/go.tmpl", w.dir+"/link"), os.WriteFile(w.dir+"/secret", []byte(evaluatedSecret), 0o600)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(root, "muster:") {
		root = "muster:\n  resources:\n    - " + root
	}
	w.write("root.yaml", root)
	w.give("stranger")

	return w
}

// give gives a tree to the stranger.
func (w *world) give(name string) {
	w.t.Helper()
	err := filepath.WalkDir(filepath.Join(w.dir, name), func(path string, _ os.DirEntry, err error) error {
		hosttest.Give(w.t, path)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// apply fetches, resolves and runs root.yaml, and returns all that went wrong.
func (w *world) apply() string {
	w.t.Helper()

	return w.applyWith("")
}

// applyWith is apply with a file of data, if it is not empty.
func (w *world) applyWith(data string) string {
	w.t.Helper()
	loader := manifest.NewLoader(manifest.Options{Types: resources.All()})
	src, err := loader.Fetch(w.t.Context(), filepath.Join(w.dir, "root.yaml"))
	if err != nil {
		return err.Error()
	}
	doc, err := loader.Parse(src)
	if err != nil {
		return err.Error()
	}
	w.in.Dir, w.in.Author = src.Dir, src.Author
	if data != "" {
		external, err := loader.LoadData(w.t.Context(), filepath.Join(w.dir, data), manifest.Inputs{Author: src.Author})
		if err != nil {
			return err.Error()
		}
		w.in.Data, w.in.Untrusted = external.Values, external.Untrusted
	}
	resolved, err := loader.Resolve(w.t.Context(), doc, w.in)
	if err != nil {
		return err.Error()
	}
	w.opts.Env.Scope.Origin = loader.Origin(resolved)
	w.runResolved(resolved)
	var failed []string
	for _, tx := range w.txs {
		failed = append(failed, tx.Errors...)
	}

	return strings.Join(failed, "; ")
}

// leaked reports whether something wrote the secret to $DIR/out.
func (w *world) leaked() bool {
	return strings.Contains(w.read("out")+w.read("out/f"), evaluatedSecret)
}

// TestSystemStrangersTemplates has a manifest of root name what a stranger owns.
func TestSystemStrangersTemplates(t *testing.T) {
	manifests := evaluated()
	manifests["resources_jet_file"] = "muster: {resources_jet_file: $DIR/stranger/list.jet}"
	for name, root := range manifests {
		t.Run(name, func(t *testing.T) {
			w := newStrangersWorld(t, root)
			err := w.apply()
			if w.leaked() {
				t.Error("it was evaluated")
			}
			if !strings.Contains(err, "belongs to user 54321") || !strings.Contains(err, "chown root "+w.dir) {
				t.Errorf("%q names no owner or no remedy", err)
			}
		})
	}
}

// TestSystemOwnTemplates has the manifest belong to the owner of the templates, as
// in a checkout that root applies.
func TestSystemOwnTemplates(t *testing.T) {
	manifests := evaluated()
	manifests["resources_jet_file"] = "muster: {resources_jet_file: $DIR/stranger/list.jet}"
	delete(manifests, "scaffold") // needs a separate process
	for name, root := range manifests {
		t.Run(name, func(t *testing.T) {
			w := newStrangersWorld(t, root)
			w.give(".")
			if err := w.apply(); err != "" || !w.leaked() {
				t.Errorf("it was not evaluated: %s", err)
			}
		})
	}
}

// TestSystemTemplatesWhileSwapped has a stranger exchange a template with one of
// root all the time.
func TestSystemTemplatesWhileSwapped(t *testing.T) {
	for name, c := range map[string]struct {
		dir   string
		place func(good, at string) error
	}{
		"a link":                     {"stranger", os.Symlink},
		"a hard link":                {"stranger", os.Link},
		"a directory of everybody's": {"open", os.Rename},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStrangersWorld(t, `file: [$DIR/out: {content: "${ template('$DIR/`+c.dir+`/go.tmpl') }"}]`)
			w.write("good", `{{ "good" }}`)
			w.write("open/go.tmpl", `{{ readFile "$DIR/secret" }}`)
			w.give("open")
			if err := errors.Join(os.Chmod(w.dir+"/open", 0o777), c.place(w.dir+"/good", w.dir+"/"+c.dir+"/good")); err != nil {
				t.Fatal(err)
			}
			stop := hosttest.Swap(t, w.dir+"/"+c.dir+"/go.tmpl", w.dir+"/"+c.dir+"/good")
			for range 200 {
				if err := w.apply(); err == "" || w.leaked() {
					t.Fatalf("it was evaluated: %q", w.read("out"))
				}
			}
			if stop() == 0 {
				t.Error("no race")
			}
		})
	}
}

// evaluatedData is a source of data that has what only root can read evaluated.
const evaluatedData = `{text: "${ readFile('$DIR/secret') }"}`

// TestSystemStrangersData has the manifest of root or a stranger, and data of either
// or of another user.
func TestSystemStrangersData(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, data int
		setup          func(w *world) error
		// words are of the error, empty for none.
		words string
	}{
		"a stranger's of root":            {data: hosttest.Stranger, words: "belongs to user 54321 and has mode 0644, so others may change what muster does: chown root $DIR/stranger/data.yaml"},
		"root's of root":                  {},
		"the author's":                    {manifest: hosttest.Stranger, data: hosttest.Stranger},
		"root's of a stranger":            {manifest: hosttest.Stranger},
		"another one's of a stranger":     {manifest: hosttest.Stranger, data: hosttest.Stranger + 1, words: "belongs to user 54322"},
		"root's that a group may write":   {setup: func(w *world) error { return os.Chmod(w.dir+"/stranger/data.yaml", 0o664) }, words: "chmod go-w $DIR/stranger/data.yaml"},
		"root's that others may write":    {setup: func(w *world) error { return os.Chmod(w.dir+"/stranger/data.yaml", 0o646) }, words: "chmod go-w $DIR/stranger/data.yaml"},
		"root's in everybody's directory": {setup: func(w *world) error { return os.Chmod(w.dir+"/stranger", 0o777) }, words: "others may replace $DIR/stranger/data.yaml"},
		"a link to a stranger's": {data: hosttest.Stranger, setup: func(w *world) error {
			return errors.Join(os.Rename(w.dir+"/stranger/data.yaml", w.dir+"/stranger/there"), os.Symlink("there", w.dir+"/stranger/data.yaml"))
		}, words: "belongs to user 54321"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStrangersWorld(t, `file: [$DIR/out: {content: "${ Data.text }"}]`)
			w.write("stranger/data.yaml", evaluatedData)
			if err := errors.Join(os.Lchown(w.dir+"/root.yaml", c.manifest, c.manifest), os.Lchown(w.dir+"/stranger", 0, 0), os.Lchown(w.dir+"/stranger/data.yaml", c.data, c.data)); err != nil {
				t.Fatal(err)
			}
			if c.setup != nil {
				if err := c.setup(w); err != nil {
					t.Fatal(err)
				}
			}
			err := w.applyWith("stranger/data.yaml")
			if words := strings.ReplaceAll(c.words, "$DIR", w.dir); (err == "") != (words == "") || !strings.Contains(err, words) {
				t.Errorf("%q, not %q", err, words)
			}
			if w.leaked() != (c.words == "") {
				t.Errorf("evaluated: %t", w.leaked())
			}
		})
	}
}

// TestSystemDataWhileSwapped: another user exchanges data files with files of root constantly.
func TestSystemDataWhileSwapped(t *testing.T) {
	w := newStrangersWorld(t, `file: [$DIR/out: {content: "${ Data.text }"}]`)
	w.write("good", "text: good")
	w.write("stranger/data.yaml", evaluatedData)
	w.give("stranger")
	if err := os.Symlink(w.dir+"/good", w.dir+"/stranger/good"); err != nil {
		t.Fatal(err)
	}
	stop := hosttest.Swap(t, w.dir+"/stranger/data.yaml", w.dir+"/stranger/good")
	for range 200 {
		if err := w.applyWith("stranger/data.yaml"); w.leaked() {
			t.Fatalf("it was evaluated: %s", err)
		}
	}
	if stop() == 0 {
		t.Error("no race")
	}
}
