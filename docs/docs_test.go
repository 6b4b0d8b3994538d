package docs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/musterfleet/muster/docs/internal/tables"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/note"
)

// pages are the pages of this folder and the README.
func pages(t *testing.T) map[string][]markdown.Block {
	t.Helper()
	paths, err := filepath.Glob("*.md")
	if err != nil || len(paths) < 5 {
		t.Fatal(paths, err)
	}
	types, err := filepath.Glob("[tgcf]*/*.md") // types, guides, coming-from, fleet
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

func noRegistrations(context.Context, string, string, string, string) ([]registration.Registration, error) {
	return nil, nil
}

// check resolves a manifest on a machine, and without one as a push does, beside
// the others of its page and the directories that its commands make.
func check(t *testing.T, page []markdown.Block, b markdown.Block) error {
	t.Helper()
	dir := t.TempDir()
	for _, other := range page {
		if other.Language == "yaml" {
			if err := os.WriteFile(filepath.Join(dir, nameOf(other)), []byte(other.Text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for line := range strings.Lines(other.Text) {
			if made, ok := strings.CutPrefix(line, "mkdir -p "); ok && other.Language == "sh" {
				if err := os.MkdirAll(filepath.Join(dir, strings.Fields(made)[0]), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	doc, err := manifest.Parse(nameOf(b), []byte(b.Text))
	if err != nil {
		return err
	}
	loader := manifest.NewLoader(manifest.Options{Types: resources.All(), Registrations: noRegistrations})
	in := manifest.Inputs{Facts: machine(), Dir: dir}
	resolved, err := loader.Resolve(t.Context(), doc, in)
	if err != nil {
		return err
	}
	if _, err := plan.Build(resolved.Resources, nil); err != nil {
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
				if err := check(t, blocks, b); err != nil {
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
				err := check(t, blocks, b)
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

// TestWatchedTypesAreDocumented: each type that is watched has a row.
func TestWatchedTypesAreDocumented(t *testing.T) {
	rows := strings.Join(markdown.Rows(markdown.Section(page(t, "agent.md"), "## Drift")), " ")
	for _, typ := range resources.All() {
		if typ.Watches != nil && !strings.Contains(rows, typ.Name) {
			t.Errorf("%s is watched, and has no row among %q", typ.Name, rows)
		}
	}
}

// TestSectionsAreDocumented compares the table with the keys that are accepted.
func TestSectionsAreDocumented(t *testing.T) {
	rows := markdown.Rows(markdown.Section(page(t, "manifest.md"), "## Sections"))
	text := map[string]string{
		"data": "data: {}", "hierarchy.order": "hierarchy: {order: []}", "hierarchy.merge": "hierarchy: {merge: deep}", "overrides": "overrides: {}",
		"muster": "muster: {}", "muster.resources": "muster: {resources: []}", "muster.fail_on_error": "muster: {fail_on_error: true}",
		"muster.flapping":    "muster: {flapping: off}",
		"muster.limit":       "muster: {limit: 30}",
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

// TestTablesOfTypesAreFresh compares the generated tables with the registered types.
func TestTablesOfTypesAreFresh(t *testing.T) {
	fresh := func(path string, generate func(string) (string, error)) {
		text := page(t, path)
		if want, err := generate(text); err != nil || text != want {
			t.Errorf("%s is old: run go generate ./docs (%v)", path, err)
		}
	}
	for _, typ := range resources.All() {
		fresh("types/"+typ.Name+".md", func(text string) (string, error) { return tables.Page(text, typ) })
	}
	fresh("types/README.md", func(text string) (string, error) { return tables.Index(text, resources.All()) })
	for _, without := range []string{"# file\n", "<!-- generated by go generate ./docs: properties -->\n"} {
		typ, _ := resources.All().Get("file")
		if text, err := tables.Page(without, typ); !errors.Is(err, tables.ErrNoPlace) {
			t.Errorf("%q gives %q, %v", without, text, err)
		}
	}
}

// TestTypesHaveExamples has each page show a manifest, a command and a request,
// in blocks that are run: here their form is checked, in testing/e2e and
// testing/rigs what comes of them.
func TestTypesHaveExamples(t *testing.T) {
	for _, typ := range resources.All() {
		commands := ""
		blocks := markdown.Blocks(page(t, "types/"+typ.Name+".md"))
		for i, b := range blocks {
			if b.Language == "sh" && b.Info != "run" {
				t.Errorf("%s.md:%d: nobody runs this", typ.Name, b.Line)
			}
			if b.Language != "sh" {
				continue
			}
			commands += b.Text
			if i+1 == len(blocks) || blocks[i+1].Language != "text" {
				t.Errorf("%s.md:%d: nothing is said of what comes of it", typ.Name, b.Line)
			}
		}
		for _, part := range []string{"muster apply ", "muster ensure " + typ.Name + " ", "muster status " + typ.Name + " ", "muster ensure api pipe", `"type": "` + typ.Name + `"`} {
			if !strings.Contains(commands, part) {
				t.Errorf("%s.md has no example with %q", typ.Name, part)
			}
		}
	}
}

// TestCodeIsThatOfItsFile compares the Go of pages with the files it is of, which
// are compiled and tested.
func TestCodeIsThatOfItsFile(t *testing.T) {
	files := map[string]bool{}
	for path, blocks := range pages(t) {
		for _, b := range blocks {
			if b.Language != "go" {
				continue
			}
			if text := page(t, filepath.Join("..", b.Info)); !strings.Contains(text, b.Text) {
				t.Errorf("%s:%d is not what stands in %s", path, b.Line, b.Info)
			}
			files[b.Info] = true
		}
	}
	for _, name := range []string{"spec.go", "type.go", "plain.go", "note_test.go"} {
		if !files["testing/note/"+name] {
			t.Errorf("no page shows %s", name)
		}
	}
}

// TestTablesOfATypeThatIsAdded has the type of the page in the tables.
func TestTablesOfATypeThatIsAdded(t *testing.T) {
	typ := note.New(note.Plain{})
	const begin, end = "<!-- generated by go generate ./docs: ", " -->\n<!-- end of generated content -->\n"
	text, err := tables.Page(begin+"properties"+end+begin+"outputs"+end, typ)
	if err != nil {
		t.Fatal(err)
	}
	index, err := tables.Index(begin+"types"+end, append(resources.All(), typ))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| `ensure` | `present`, `absent` | `present` | Desired state |", "| `value` | text |  | The value, one line; required except with absent |",
		"| `value` | Current value |", "| [note](note.md) | Notes: files that hold one value | `present`, `absent` | `plain` | no | `value` |",
	} {
		if !strings.Contains(text+index, row+"\n") {
			t.Errorf("there is no row %s in\n%s%s", row, text, index)
		}
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

// TestReadmeNamesGoVersion compares the README with go.mod.
func TestReadmeNamesGoVersion(t *testing.T) {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	module, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "[Go](https://go.dev/doc/install) " + module.Go.Version + " or later"; !strings.Contains(page(t, "../README.md"), want) {
		t.Errorf("the README does not contain %q", want)
	}
}

// TestFirstFleetInOrder checks that the steps of the README are in order.
func TestFirstFleetInOrder(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := markdown.Section(string(text), "## A fleet")
	for _, step := range []string{
		"go install", "muster fleet permissions", "nats-server -c", "muster fleet init",
		"install -d -m 0755 /etc/muster", "/etc/muster/agent.yaml", "muster agent check", "systemctl enable --now muster", "muster fleet push", "muster fleet wait",
	} {
		_, after, found := strings.Cut(rest, step)
		if !found {
			t.Fatalf("%q is missing, or before a step that it needs", step)
		}
		rest = after
	}
}
