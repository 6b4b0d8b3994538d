package resources_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/webtest"
)

// applied resolves and runs a manifest, and returns the result of each resource, one
// line each.
func applied(t *testing.T, text string, noop bool) []string {
	t.Helper()
	doc, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	graph, err := plan.Build(resolved.Resources, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	_, err = engine.Reconcile(t.Context(), graph, engine.ReconcileOptions{Options: engine.Options{
		Env: resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t), Scope: resource.Scope{Noop: noop}},
		OnTransaction: func(tx *model.Transaction) {
			line := filepath.Base(tx.Name) + " " + string(tx.Outcome())
			for _, word := range append([]string{tx.NoopMessage}, tx.Errors...) {
				if word != "" {
					line += ": " + word
				}
			}
			out = append(out, line)
		},
	}})
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func lines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOutputsOfEachType tests the outputs of all types that any user can run; testing/rigs tests package.
func TestOutputsOfEachType(t *testing.T) {
	var producers []string
	for _, typ := range resources.All() {
		if typ.Outputs != nil {
			producers = append(producers, typ.Name)
		}
	}
	slices.Sort(producers)
	for _, name := range []string{"archive", "exec", "package"} {
		if !slices.Contains(producers, name) {
			t.Errorf("a %s gives no outputs", name)
		}
	}
	server, dir := webtest.Start(t), t.TempDir()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Mode: 0o644}), w.Close()); err != nil {
		t.Fatal(err)
	}
	server.Put("/a.tar", webtest.Text(packed.String()))
	user, group := hosttest.Owner(t)
	text := fmt.Sprintf(`
muster:
  resources:
    - file:
        - defaults: {owner: %[3]q, group: %[4]q, mode: "0600"}
        - %[1]s/said: {content: "${ outputs('exec#say').stdout }|${ outputs('exec#say').stderr }|${ outputs('exec#say').exit_code }"}
        - %[1]s/sum: {content: "${ outputs('archive#%[1]s/a.tar').checksum }"}
        - %[1]s/again: {content: "${ readFile('%[1]s/sum') }"}
    - exec:
        - say: {command: "echo; echo ' two words '; echo oh >&2; exit 3", provider: shell, returns: [3], unless: "test -e %[1]s/said"}
        - use: {command: "test ${ outputs('archive#%[1]s/a.tar').checksum } = ${ outputs('exec#say').stdout ?? 'none' }", onlyif: "test -e %[1]s/said", returns: [1, 2]}
    - archive:
        - %[1]s/a.tar: {url: %[2]s/a.tar, owner: %[3]q, group: %[4]q}
`, dir, server.URL, user, group)
	before := hosttest.Snapshot(t, dir)
	lines(t, applied(t, text, true),
		"say noop: Would have executed",
		"said skipped: unknown until exec#say is applied: `content` is known after apply",
		"a.tar noop: Would have downloaded",
		"sum skipped: unknown until archive#"+dir+"/a.tar is applied: `content` is known after apply",
		"again skipped: unknown until archive#"+dir+"/a.tar is applied: `content` is known after apply",
		"use skipped: unknown until archive#"+dir+"/a.tar is applied: `command` is known after apply")
	if changes := hosttest.SnapshotDiff(before, hosttest.Snapshot(t, dir)); len(changes) > 0 {
		t.Errorf("noop changed %v", changes)
	}
	lines(t, applied(t, text, false), "say changed", "said changed", "a.tar changed", "sum changed", "again changed", "use changed")
	sum := fmt.Sprintf("%x", sha256.Sum256(packed.Bytes()))
	for name, want := range map[string]string{"said": "two words|oh|3", "sum": sum, "again": sum} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, not %q, %v", name, got, want, err)
		}
	}
}

// TestNoopOfAFileThatIsReadAnew: the current content of a changing file is not its future content.
func TestNoopOfAFileThatIsReadAnew(t *testing.T) {
	user, group := hosttest.Owner(t)
	dir := t.TempDir()
	text := func(content string) string {
		return fmt.Sprintf("muster:\n  resources:\n    - file:\n        - defaults: {owner: %q, group: %q, mode: '0600'}\n        - %[3]s/a: {content: %[4]s}\n        - %[3]s/b: {content: \"${ readFile('%[3]s/a') }\"}\n", user, group, dir, content)
	}
	lines(t, applied(t, text("one"), false), "a changed", "b changed")
	lines(t, applied(t, text("one"), true), "a stable", "b stable")
	lines(t, applied(t, text("two"), true), "a noop: Would have updated the file", "b skipped: unknown until file#"+dir+"/a is applied: `content` is known after apply")
	lines(t, applied(t, text("two"), false), "a changed", "b changed")
}
