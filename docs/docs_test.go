package docs_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/markdown"
)

// pages are the pages of this folder and the README.
func pages(t *testing.T) map[string][]markdown.Block {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	types, err := filepath.Glob("types/*.md")
	if err != nil || len(types) < 2 {
		t.Fatal(types, err)
	}
	out := map[string][]markdown.Block{}
	for _, path := range append(append(paths, types...), "../README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = markdown.Blocks(string(text))
	}

	return out
}

// page gives the text of a page.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// machine are facts under which every example must hold.
func machine() model.Facts {
	return model.Facts{"hostname": "web01", "host": map[string]any{"info": map[string]any{"os": "linux", "platformFamily": "debian"}}}
}

// nameOf is the file that a block is, from the comment in its first line.
func nameOf(b markdown.Block) string {
	line, _, _ := strings.Cut(b.Text, "\n")
	if name, ok := strings.CutPrefix(line, "# "); ok && !strings.Contains(name, " ") {
		return name
	}

	return "manifest.yaml"
}

func noRegistrations(context.Context, string, string, string, string) ([]model.Registration, error) {
	return nil, nil
}

// check resolves a manifest on a machine, and without one as a push does.
func check(t *testing.T, b markdown.Block) error {
	t.Helper()
	doc, err := manifest.Parse(nameOf(b), []byte(b.Text))
	if err != nil {
		return err
	}
	loader := manifest.NewLoader(manifest.Options{Types: resources.All(), Registrations: noRegistrations})
	in := manifest.Inputs{Facts: machine(), Dir: t.TempDir()}
	resolved, err := loader.Resolve(t.Context(), doc, in)
	if err != nil {
		return err
	}
	if _, err := engine.Build(resolved.Resources, nil); err != nil {
		return err
	}
	_, err = loader.Check(t.Context(), doc, in)

	return err
}

// TestManifestsAreValid takes each block of YAML for what its info string says it is.
func TestManifestsAreValid(t *testing.T) {
	seen := map[string]int{}
	for path, blocks := range pages(t) {
		for i, b := range blocks {
			if b.Language != "yaml" {
				continue
			}
			seen[b.Info]++
			switch b.Info {
			case "":
				if err := check(t, b); err != nil {
					t.Errorf("%s:%d: %v", path, b.Line, err)
				}
			case "data":
				doc, err := manifest.ParseData(nameOf(b), []byte(b.Text))
				if err == nil {
					_, err = manifest.NewLoader(manifest.Options{}).ResolveData(t.Context(), doc, manifest.Inputs{Facts: machine()})
				}
				if err != nil {
					t.Errorf("%s:%d: %v", path, b.Line, err)
				}
			case "facts":
				if _, err := facts.Parse(nameOf(b), []byte(b.Text)); err != nil {
					t.Errorf("%s:%d: %v", path, b.Line, err)
				}
			case "wrong":
				want := blocks[i+1]
				err := check(t, b)
				if err == nil || want.Language != "text" || !strings.HasPrefix(err.Error()+"\n", want.Text) {
					t.Errorf("%s:%d gives\n%v\nand the page shows\n%s", path, b.Line, err, want.Text)
				}
			case "agent", "assignment":
				// Those are for the package that may know the agent: testing/e2e.
			default:
				t.Errorf("%s:%d: a block of YAML that is a %q is not known", path, b.Line, b.Info)
			}
		}
	}
	for info, least := range map[string]int{"": 9, "data": 1, "facts": 1, "wrong": 2} {
		if seen[info] < least {
			t.Errorf("there are only %d blocks of kind %q", seen[info], info)
		}
	}
}

// TestCommonPropertiesAreDocumented compares the table with model.Common.
func TestCommonPropertiesAreDocumented(t *testing.T) {
	var want []string
	for f := range reflect.TypeFor[model.Common]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, key)
	}
	got := markdown.Rows(markdown.Section(page(t, "manifest.md"), "### Common properties"))
	if !slices.Equal(got, want) {
		t.Errorf("the table has %q, the model %q", got, want)
	}
}

// TestSectionsAreDocumented compares the table with the keys that are accepted.
func TestSectionsAreDocumented(t *testing.T) {
	rows := markdown.Rows(markdown.Section(page(t, "manifest.md"), "## Sections"))
	text := map[string]string{
		"data": "data: {}", "hierarchy.order": "hierarchy: {order: []}", "hierarchy.merge": "hierarchy: {merge: deep}", "overrides": "overrides: {}",
		"muster": "muster: {}", "muster.resources": "muster: {resources: []}", "muster.fail_on_error": "muster: {fail_on_error: true}",
		"muster.pre_message": "muster: {pre_message: x}", "muster.post_message": "muster: {post_message: x}",
	}
	for _, key := range rows {
		if doc, err := manifest.Parse("x", []byte(text[key])); err != nil || len(doc.Problems()) > 0 {
			t.Errorf("%s: %v", key, err)
		}
		delete(text, key)
	}
	if len(text) > 0 {
		t.Errorf("no row for %v", text)
	}
}

// TestLinksLeadSomewhere follows the relative links of every page, anchors included.
func TestLinksLeadSomewhere(t *testing.T) {
	checked := 0
	for path := range pages(t) {
		for _, link := range markdown.Links(page(t, path)) {
			if strings.Contains(link, "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(link, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if anchor != "" && !slices.Contains(markdown.Anchors(page(t, target)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", path, target, anchor)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links were found", checked)
	}
}
