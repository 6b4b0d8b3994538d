package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// checked checks a document in the directory dir.
func checked(t *testing.T, text, dir string, data map[string]any) (*manifest.Checked, error) {
	t.Helper()
	doc, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Types = append(o.Types, resource.Of[*thingSpec, *thingState, thingProvider](thing{name: "copied"}, thingProvider{}))

	return manifest.NewLoader(o).Check(t.Context(), doc, manifest.Inputs{Dir: dir, Data: data})
}

// Values that only the node knows are assumed to be valid.
func TestCheckLeavesToTheNodeWhatIsIts(t *testing.T) {
	for name, text := range map[string]string{
		"facts":               "muster: {resources: [{copied: [{/a: {mode: \"${ Facts.no.such }\"}}]}]}",
		"lookup":              "muster: {resources: [{copied: [{/a: {mode: \"${ lookup('facts.mode', 'no') }\"}}]}]}",
		"environment":         "muster: {resources: [{copied: [{/a: {mode: \"${ Environ.MODE }\"}}]}]}",
		"bucket":              "muster: {resources: [{copied: [{/a: {mode: \"${ kvGet('b', 'k') }\"}}]}]}",
		"file of the node":    "muster: {resources: [{copied: [{/a: {mode: \"${ readFile('/etc/hostname') }\"}}]}]}",
		"name":                "muster: {resources: [{copied: [{\"${ Facts.a }\": {mode: \"0644\"}}]}]}",
		"control":             "muster: {resources: [{copied: [{/a: {control: {if: Facts.a == 1}}}]}]}",
		"data of facts":       "data: {mode: \"${ Facts.mode }\"}\nmuster: {resources: [{copied: [{/a: {mode: \"${ Data.mode }\"}}]}]}",
		"hierarchy":           "data: {mode: unset}\nhierarchy: {order: [\"os:${ Facts.os }\"]}\noverrides: {\"os:debian\": {mode: \"0644\"}}\nmuster: {resources: [{copied: [{/a: {mode: \"${ Data.mode }\"}}]}]}",
		"required in data":    "data:\n  # @require\n  mode: \"${ Facts.mode }\"\nmuster: {resources: []}",
		"reference to a name": "muster: {resources: [{copied: [{\"${ Facts.a }\": {}}, {/b: {require: [copied#/x]}}]}]}",
		"message":             "muster: {pre_message: \"${ Facts.a }\", resources: []}",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := checked(t, text, "", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckFindsWhatIsWrongAnywhere(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"literal":           {"muster: {resources: [{copied: [{/a: {mode: rw}}]}]}", "m.yaml:1:44: invalid mode \"rw\""},
		"beside a fact":     {"muster: {resources: [{copied: [{\"${ Facts.a }\": {retry: many}}]}]}", "`retry` must be a whole number"},
		"unknown property":  {"muster: {resources: [{copied: [{/a: {moed: \"${ Facts.a }\"}}]}]}", "did you mean `mode`?"},
		"unknown type":      {"muster: {resources: [{copid: [{/a: {}}]}]}", "did you mean `copied`?"},
		"expression":        {"muster: {resources: [{copied: [{/a: {mode: \"${ Facts. }\"}}]}]}", "m.yaml:1:45: the expression is not valid"},
		"unused override":   {"hierarchy: {order: [\"${ Facts.os }\"]}\noverrides: {debian: {a: \"${ nonsense( }\"}}\nmuster: {resources: []}", "the expression is not valid"},
		"control":           {"muster: {resources: [{copied: [{/a: {control: {if: Facts. ==}}}]}]}", "`control.if` is not a valid expression"},
		"data that is sure": {"data: {mode: rw}\nmuster: {resources: [{copied: [{/a: {mode: \"${ Data.mode }\"}}]}]}", "invalid mode \"rw\""},
		"given data":        {"data: {mode: \"0644\"}\nmuster: {resources: [{copied: [{/a: {mode: \"${ Data.given }\"}}]}]}", "invalid mode \"rwx\""},
		"cycle":             {"muster: {resources: [{copied: [{/a: {require: [copied#/b]}}, {/b: {require: [copied#/a]}}]}]}", "wait for each other"},
		"no such resource":  {"muster: {resources: [{copied: [{/a: {require: [copied#/b]}}]}]}", "copied#/b"},
		"twice":             {"muster: {resources: [{copied: [{/a: {}}, {/a: {}}]}]}", "copied#/a"},
		"near @require":     {"data:\n  # @requird\n  mode: \"${ Facts.mode }\"\nmuster: {resources: []}", "did you mean `@require`?"},
		"no section":        {"data: {a: 1}", "no `muster` section"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checked(t, c.text, "", map[string]any{"given": "rwx"})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestCheckFindsFiles checks that files beside the manifest are found, and files of the node are
// not.
func TestCheckFindsFiles(t *testing.T) {
	const text = `
data: {os: debian}
muster:
  resources:
    - copied:
        - /a: {source: files/a}
        - /again: {source: files/a}
        - /b: {source: "files/${ Data.os }"}
        - /c: {source: "files/${ Facts.os }"}
        - /d: {source: /opt/d}
        - /e: {source: "https://example.com/e"}
        - /f: {source: "${ Facts.dir }/f"}
        - /g: {source: "/opt/${ Facts.os }"}
        - /h: {mode: "${ readFile('mode') }"}
        - /i: {mode: "${ file('gone') }"}
        - /j: {control: {if: "false"}, source: files/excluded}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mode"), []byte("0644"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := checked(t, text, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range got.Files {
		line := f.Path + " " + f.Pos.String()
		if f.HasExpression {
			line += " late"
		}
		found = append(found, line)
	}
	want := lines("files/a m.yaml:6:24", "files/debian m.yaml:8:24", "files/${ Facts.os } m.yaml:9:24 late", "mode m.yaml", "gone m.yaml")
	if lines(found...) != want {
		t.Errorf("found\n%s", lines(found...))
	}
}

// TestCheckReadsFilesBesideIt checks that invalid files beside the manifest are reported.
func TestCheckReadsFilesBesideIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mode"), []byte("rw"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := checked(t, "muster: {resources: [{copied: [{/a: {mode: \"${ readFile('mode') }\"}}]}]}", dir, nil)
	if err == nil || !strings.Contains(err.Error(), "invalid mode \"rw\"") {
		t.Errorf("got %v", err)
	}
}
