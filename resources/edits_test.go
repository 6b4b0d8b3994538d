package resources_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/hosttest"
)

// reconcile resolves and runs a manifest. DIR in the text means dir. It returns one line for each resource.
func reconcile(t *testing.T, dir, text string, noop bool) string {
	t.Helper()
	user, group := hosttest.Owner(t)
	text = strings.NewReplacer("DIR", dir, "owned", "owner: '"+user+"', group: '"+group+"', mode: '0644'").Replace(text)
	doc, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{})
	if err != nil {
		return strings.ReplaceAll(err.Error(), dir, "DIR")
	}

	return reconcileAll(t, dir, resolved.Resources, noop)
}

// TestPartsOfAFile runs parts of all types of one file, with a file resource and a command that follow.
func TestPartsOfAFile(t *testing.T) {
	const text = `
muster:
  resources:
    - exec: [{reload: {command: "cp DIR/app.ini DIR/seen", refresh_only: true, subscribe: ["setting#limit"]}}]
    - line: [{first: {path: DIR/app.ini, line: "; by muster", at: start}}]
    - block: [{options: {path: DIR/app.ini, content: "x = 1", marker: "; {mark} {name}", after: "^.b"}}]
    - setting: [{limit: {path: DIR/app.ini, section: a, key: limit, value: 2}}]
    - line: [{failing: {path: DIR/app.ini, line: "y", after: "^nothing"}}]
    - file: [{DIR/app.ini: {owned}}]
`
	const failing = "line#failing failed: DIR/app.ini: no line matches `after`, \"^nothing\": correct it, or remove it to add at the end\n"
	dir := t.TempDir()
	path := filepath.Join(dir, "app.ini")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[a]\nlimit = 1\n[b]\n")
	for _, c := range []struct {
		noop bool
		want string
	}{
		{true, "file#DIR/app.ini noop: Would have updated attributes\nline#first noop: Would have added a line before line 1\nblock#options noop: Would have added the block\n" +
			"setting#limit noop: Would have changed limit from 1 to 2\n" + failing + "exec#reload noop: Would have executed via subscribe\n"},
		{false, "file#DIR/app.ini changed\nline#first changed\nblock#options changed\nsetting#limit changed\n" + failing + "exec#reload refreshed\n"},
	} {
		if got := reconcile(t, dir, text, c.noop); got != c.want {
			t.Errorf("noop %v:\n%s\nnot\n%s", c.noop, got, c.want)
		}
	}
	content, err := os.ReadFile(path)
	if want := "; by muster\n[a]\nlimit = 2\n[b]\n; BEGIN options\nx = 1\n; END options\n"; err != nil || string(content) != want {
		t.Errorf("%q, not %q", content, want)
	}
	if got := reconcile(t, dir, text, false); strings.Contains(got, "changed") {
		t.Errorf("not stable:\n%s", got)
	}
}

// TestValidateRefusesTheSum checks that no part is tried alone after a command refused the file with all parts.
func TestValidateRefusesTheSum(t *testing.T) {
	const text = `
muster:
  resources:
    - line:
        - a: {path: DIR/f, line: a, validate: "sh -c 'test $(wc -l <$1) -lt 2' sh {}"}
        - b: {path: DIR/f, line: b}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := reconcile(t, dir, text, false)
	content, err := os.ReadFile(filepath.Join(dir, "f"))
	if strings.Count(got, "failed: validate: sh ended with exit code 1") != 2 || err != nil || len(content) > 0 {
		t.Errorf("%q:\n%s", content, got)
	}
}

// TestPartsThatConflict checks that two resources of one part, and a file with content beside a part, are an error.
func TestPartsThatConflict(t *testing.T) {
	for parts, want := range map[string]string{
		"- line: [{a: {path: DIR/f, line: x 1, match: ^x}}, {b: {path: DIR/f, line: x 2, match: ^x}}]":                                                                                             "line#b and line#a, at m.yaml:3:15, edit the same part of ",
		"- block: [{a: {path: DIR/f, marker: '# {mark}', content: x}}, {b: {path: DIR/f, marker: '# {mark}', content: y}}]":                                                                        "block#b and block#a",
		"- setting: [{a: {path: DIR/f, format: ini, section: s, key: k, value: 1}}, {b: {path: DIR/f, format: ini, section: s, key: k, value: 2}}]":                                                "setting#b and setting#a",
		"- setting: [{a: {path: DIR/f, format: json, key: [s, k], value: 1}}, {b: {path: DIR/f, format: json, key: [s, k], value: 2}}]":                                                            "setting#b and setting#a",
		"- line: [{a: {path: DIR/f, line: x}}]\n    - file: [{DIR/f: {owned, content: y}}]":                                                                                                        "file#DIR/f and line#a",
		"- line: [{a: {path: DIR/f, line: x}}, {b: {path: DIR/f, line: y}}]\n    - setting: [{a: {path: DIR/f, format: ini, section: s, key: k, value: 1}}]\n    - exec: [{'true': {creates: /}}]": "",
	} {
		got := reconcile(t, t.TempDir(), "muster:\n  resources:\n    "+parts+"\n", true)
		if want != "" && !strings.Contains(got, want) || want == "" && (strings.Contains(got, "manage the same") || strings.Contains(got, "edit the same")) {
			t.Errorf("%s:\n%s, without %q", parts, got, want)
		}
	}
}
