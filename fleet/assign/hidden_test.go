package assign_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
)

// hides are values that some parsers read differently: YAML 1.1 ends lines at more characters, and JSON
// ignores case and takes the last of two keys. shows is the text that people must see, hidden the text they
// must not.
var hides = map[string]struct{ value, shows, hidden string }{
	"a manifest behind a document": {
		"data: {} # motd\u2028protocol: io.muster.v1.assignment\u2028name: motd\u2028manifest: \"muster: {resources: []}\\n\"\u2028\n" +
			"muster: {resources: [{file: [{/evil: {content: \"pwned\\n\", owner: root, group: root, mode: \"0644\"}}]}]}\n",
		"pwned", "manifest: |"},
	"terms in a comment":       {"protocol: io.muster.v1.assignment\nmanifest: \"x\" # text\u2028noop: true\u2029when: \"false\"\u0085expires: 2001-01-01T00:00:00Z\n", "manifest: x", "noop"},
	"a manifest in other case": {`{"protocol": "io.muster.v1.assignment", "manifest": "run", "MANIFEST": "shown"}`, "# nodes reject this: ", "manifest: shown"},
	"two manifests":            {`{"protocol": "io.muster.v1.assignment", "manifest": "run", "manifest": "shown"}`, "# nodes reject this: ", "manifest: shown"},
	"a merged manifest":        {"protocol: io.muster.v1.assignment\nmanifest: run\n<<: {noop: true}\n", "manifest: run\nnoop: true", "<<"},
	"another name":             {"protocol: io.muster.v1.assignment\nname: other\nmanifest: x\n", "# nodes reject this: ", "manifest: x\nname"},
	"an unknown key":           {"protocol: io.muster.v1.assignment\nmanifest: x\n\"a\\nmanifest: y\": 1\n", "# nodes reject this: ", "\nmanifest: y"},
}

// TestWhatIsShownIsWhatNodesRun: shown, compared and named by its digest is what the
// decoder of nodes makes of it.
func TestWhatIsShownIsWhatNodesRun(t *testing.T) {
	for name, c := range hides {
		t.Run(name, func(t *testing.T) {
			const key = "group.web.motd"
			got := assign.Readable(key, []byte(c.value))
			if !strings.Contains(got, c.shows) || strings.Contains(got, c.hidden) {
				t.Errorf("shown as\n%s", got)
			}
			checkShown(t, key, []byte(c.value))
			// A push over it is a change and shown as one.
			m := newMemory()
			if _, err := m.Put(t.Context(), key, []byte(c.value)); err != nil {
				t.Fatal(err)
			}
			good := textOf(t, "muster: {resources: []}\n")
			done, err := pusher(m).Push(t.Context(), assign.Push{Source: good, Name: "motd", Targets: []fleet.Target{{Group: "web"}}})
			if err != nil || done[0].Unchanged {
				t.Errorf("pushed: %+v, %v", done, err)
			}
			var shown [2]assign.Content
			for i, value := range []string{c.value, string(good.Text)} {
				shown[i], err = assign.ReadContent(t.Context(), model.Entry{Key: key, Value: []byte(value)}, func(context.Context, string) (io.ReadCloser, error) { return nil, errors.New("no bundle") })
				if err != nil {
					t.Fatal(err)
				}
			}
			diff, err := shown[0].Diff(t.Context(), shown[1])
			if err != nil || !strings.Contains(diff, "+muster: {resources: []}") {
				t.Errorf("the difference is\n%s, %v", diff, err)
			}
		})
	}
}

// checkShown checks that the shown value decodes like the stored one: after the reason for a rejected value,
// a bare manifest unchanged, a document equal for nodes.
func checkShown(t *testing.T, key string, value []byte) {
	t.Helper()
	got := assign.Readable(key, value)
	v, problems := document.DecodeAssigned(key, value)
	reason, rest, _ := strings.Cut(got, "\n")
	switch rejected := strings.HasPrefix(reason, "# nodes reject this: "); {
	case problems != nil || v.Bare && rejected:
		if !rejected || strings.ContainsAny(reason, "\r\u0085\u2028\u2029") || v.Content != nil && rest != string(v.Content) {
			t.Errorf("%q is rejected (%v) and shown as %q", value, problems, got)
		}
		return
	case v.Bare:
		if got != string(v.Content) {
			t.Errorf("%q is shown as %q", value, got)
		}
		return
	}
	again, problems := document.DecodeAssigned(key, []byte(got))
	if problems != nil {
		t.Fatalf("%q is shown as %q, which nodes reject: %v", value, got, problems)
	}
	want, err := model.EncodeAssignment(v.Assignment)
	shown, otherErr := model.EncodeAssignment(again.Assignment)
	if err != nil || otherErr != nil || !bytes.Equal(want, shown) {
		t.Errorf("%q is shown as %q: nodes run %s, and what is shown is %s (%v, %v)", value, got, want, shown, err, otherErr)
	}
}

// FuzzReadable shows any value: what people see is what nodes make of it.
func FuzzReadable(f *testing.F) {
	for _, s := range []string{
		"", "muster: {}", `{"protocol":"io.muster.v1.assignment","manifest":"a\nb"}`, "protocol: io.muster.v1.assignment\nnoop: true\n", "a: &a [*a]", "\xff", "{<<, {0}}", "{<<, {0}, protocol}",
		"protocol: io.muster.v1.assignment\nmanifest: |\n  muster: {}\n", "protocol: io.muster.v1.assignment\nbundle: sha256-x\nnoop: yes\n", `{"protocol": "io.muster.v1.assignment", "manifest": "x", "data": {"a": [1, {"b": null}]}}`,
		`{"payloadType": "x", "payload": "y", "signatures": []}`, "protocol: [\n", "protocol: &a\n  x: *a\n", "- protocol\n", "protocol: io.muster.v1.assignment\nmanifest: a\ndata:\n  <<: {a: b}\n  ? [x]\n  : y\n",
		"protocol: io.muster.v1.assignment\nmanifest: a\nexpires: 2030-01-01T00:00:00Z\ninterval: 5m\npriority: 3\n",
		"protocol: io.muster.v1.assignment\nmanifest: \"a\\u2028b\\n\\x85c\\u2029\\td\\x01\\ufeff\\u202e\"\ndata: {a: .nan, b: -.inf, c: 1e400, d: 0x1f, e: 12345678901234567890, f: 1.0, \"<<\": {x: ~}, y: \"yes\", \"\\u2028\": \"<<\"}\n",
		"protocol: io.muster.v1.assignment\nmanifest: a\nissued: 2030-01-01T00:00:00.123456789+23:59\nwhen: '#'\ndrift: report\n",
		"protocol: io.muster.v1.assignment\rmanifest: \"a\"\r", "protocol: io.muster.v1.assignment\nmanifest: \" a\"\n---\nmanifest: b\n",
	} {
		f.Add([]byte(s))
	}
	for _, c := range hides {
		f.Add([]byte(c.value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		checkShown(t, "group.web.motd", value)
		if content, err := signed.Content(value); err != nil && content != nil {
			t.Errorf("the content of a broken envelope is %q", content)
		}
	})
}
