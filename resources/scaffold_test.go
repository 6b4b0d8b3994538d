package resources_test

import (
	"strings"
	"testing"
)

// TestMissingTemplates finds templates that are not beside the manifest before
// anything runs, unless something of the manifest may bring them.
func TestMissingTemplates(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, want string }{
		"missing":           {"muster: {resources: [{scaffold: [{$DIR/out: { source: no}}]}]}", ": `source`: there is no directory no beside this manifest, and no resource creates it (a relative path is relative to the manifest that names it)"},
		"a file":            {"muster: {resources: [{scaffold: [{$DIR/out: { source: root.yaml}}]}]}", ": `source`: root.yaml beside this manifest is not a directory of templates"},
		"there":             {"muster: {resources: [{scaffold: [{$DIR/out: { source: there}}]}]}", ""},
		"a file within":     {"muster: {resources: [{file: [{$DIR/no/f: {content: x}}]}, {scaffold: [{$DIR/out: { source: no}}]}]}", ""},
		"a directory above": {"muster: {resources: [{archive: [{$DIR/a.tar: {url: 'https://example.com/a.tar', extract_parent: $DIR/no, owner: root, group: root}}]}, {scaffold: [{$DIR/out: { source: no}}]}]}", ""},
		"a command":         {"muster: {resources: [{exec: [x: {command: /bin/mkdir no}]}, {scaffold: [{$DIR/out: { source: no}}]}]}", ""},
		"a skipped command": {"muster: {resources: [{exec: [x: {command: /bin/mkdir no, control: {if: 'false'}}]}, {scaffold: [{$DIR/out: { source: no}}]}]}", "beside this manifest"},
		"skipped":           {"muster: {resources: [{scaffold: [{$DIR/out: { source: no, control: {if: 'false'}}}]}]}", ""},
		"not known yet":     {"muster: {resources: [{exec: [x: {command: /bin/echo}]}, {scaffold: [{$DIR/out: { source: \"${ outputs('exec#x').stdout }\"}}]}]}", ""},
		"absent":            {"muster: {resources: [{scaffold: [{$DIR/out: { source: no, ensure: absent}}]}]}", ""},
		"absolute":          {"muster: {resources: [{scaffold: [{$DIR/out: { source: $DIR/no}}]}]}", ""},
		"elsewhere":         {"muster: {resources: [{scaffold: [{$DIR/out: { source: 'https://example.com/t.tar.gz'}}]}]}", ""},
		"of a child":        {"muster: {resources: [{apply: [{sub/child.yaml: {}}]}]}", ": `source`: there is no directory there beside"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "-- root.yaml --\n"+tc.manifest+"\n-- there/f --\nx\n-- sub/child.yaml --\nmuster: {resources: [{scaffold: [{$DIR/out: { source: there}}]}]}\n")
			resolved, err := w.resolve()
			switch {
			case tc.want == "" && err != nil:
				t.Error(w.short(err.Error()))
			case tc.want != "" && (err == nil || !strings.Contains(w.short(err.Error()), tc.want)):
				t.Errorf("got  %v, %v\nwant %s", resolved, err, tc.want)
			}
			if _, _, err := w.check(w.dir); name != "of a child" && err != nil {
				t.Error("a push:", w.short(err.Error()))
			}
		})
	}
}
