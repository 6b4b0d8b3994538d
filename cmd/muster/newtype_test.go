package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/note"
)

// TestATypeThatIsAdded adds a type as docs/adding-a-type.md describes: every command supports it without
// other changes.
func TestATypeThatIsAdded(t *testing.T) {
	types := append(resources.All(), note.New(note.Plain{}))
	dir := t.TempDir()
	t.Setenv("MUSTER_STATE_DIR", filepath.Join(dir, "state"))
	t.Setenv("MUSTER_CONFIG_DIR", filepath.Join(dir, "config"))
	muster := func(want int, stdin string, args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := run(types, args, strings.NewReader(stdin), &stdout, &stderr); code != want {
			t.Fatalf("muster %s: exit code %d\n%s%s", strings.Join(args, " "), code, &stdout, &stderr)
		}
		return stdout.String() + stderr.String()
	}
	says := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("nothing says %q:\n%s", part, got)
			}
		}
	}
	path := filepath.Join(dir, "hostname")
	says(muster(0, "", "ensure", "--help"), "ensure note", "Notes: files that hold one value")
	says(muster(0, "", "ensure", "note", "--help"), "the absolute path, for example /etc/hostname", "--value=VALUE", "--ensure=present|absent", "--provider=plain")
	says(muster(0, "", "status", "note", "--help"), "--value=VALUE")
	says(muster(0, "", "fleet", "ensure", "note", "--help"), "--value=VALUE")
	says(muster(cli.ExitUsage, "", "ensure", "note", path), "a note needs a value (for example --value web01)")
	says(muster(0, "", "ensure", "--noop", "note", path, "--value", "web01"), "Would have set the value", "value:  -> web01")
	says(muster(0, "", "ensure", "note", path, "--value", "web01"), "note#"+path+" changed ensure=present", "provider=plain")
	says(muster(0, "", "status", "note", path), `"protocol": "io.choria.ccm.v1.resource.note.state"`, `"value": "web01"`)

	request, err := json.Marshal(map[string]any{"protocol": model.ProtocolEnsureRequest, "type": "note", "properties": map[string]any{"name": path, "value": "web02"}})
	if err != nil {
		t.Fatal(err)
	}
	says(muster(0, string(request), "ensure", "api", "pipe"), `"type": "note"`, `"changed": true`, `"value": "web02"`)
	if text, err := os.ReadFile(path); err != nil || string(text) != "web02\n" {
		t.Errorf("%q, %v", text, err)
	}

	manifest := `
muster:
  resources:
    - note:
        - ` + dir + `/copy: {value: "${ outputs('note#` + path + `').value }"}
        - ` + path + `: {value: web03}
`
	says(muster(0, manifest, "graph", "-"), "1  note#"+path, "2  note#"+dir+"/copy", "after note#"+path+" (outputs)")
	says(muster(0, manifest, "apply", "--noop", "-"), "`value` is known after apply")
	says(muster(0, manifest, "apply", "-"), "note#"+path+" changed", "note#"+dir+"/copy changed")
	says(muster(1, strings.Replace(manifest, "web03", "{}", 1), "apply", "-"), "`value` must be a string, not a mapping")
	says(muster(1, strings.Replace(manifest, "value: web03", "valeu: web03", 1), "apply", "-"), "unknown property `valeu` of note", "did you mean `value`")
}
