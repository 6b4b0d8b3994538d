package desired

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

// FuzzAssignment reads any value of a key without a panic. Accepted values can run.
func FuzzAssignment(f *testing.F) {
	for _, seed := range []string{
		"", "muster: {resources: []}\n", "protocol: io.muster.v1.assignment\nmanifest: |\n  muster: {}\n",
		"protocol: io.muster.v1.assignment\nbundle: sha256-x\nnoop: yes\n", `{"protocol": "io.muster.v1.assignment", "manifest": "x", "data": {"a": [1, {"b": null}]}}`,
		`{"payloadType": "x", "payload": "y", "signatures": []}`, "protocol: [\n", "protocol: &a\n  x: *a\n", "- protocol\n", "protocol: io.muster.v1.assignment\nmanifest: a\ndata:\n  <<: {a: b}\n  ? [x]\n  : y\n",
		"protocol: io.muster.v1.assignment\nmanifest: a # \u2028noop: true\u2029when: x\u0085\n", "data: {} # \u2028protocol: io.muster.v1.assignment\u2028\nmuster: {}\n", `{"protocol": "io.muster.v1.assignment", "manifest": "a", "MANIFEST": "b"}`,
		"{<<, {0}, protocol}", "protocol: io.muster.v1.assignment\n<<: {manifest: a}\n",
		"protocol: io.muster.v1.assignment\nmanifest: a\nexpires: 2030-01-01T00:00:00Z\ninterval: 5m\npriority: 3\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, problems := parse(model.Entry{Key: "node.n.name", Revision: 1, Value: data})
		if (a == nil) != (len(problems) > 0) {
			t.Fatalf("an assignment %v with problems %v", a, problems)
		}
		for _, p := range problems {
			if p.Message == "" || p.Pos.File != "node.n.name" {
				t.Fatalf("a problem without words or place: %+v", p)
			}
		}
		if a != nil && (a.Digest == "" || a.sum == "" || (a.Manifest != "" && a.Bundle != "")) {
			t.Fatalf("accepted: %+v", a)
		}
	})
}
