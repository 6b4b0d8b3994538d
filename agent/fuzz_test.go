package agent

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

// FuzzAssignment reads any value of a key: it never panics, and what it accepts
// can be run.
func FuzzAssignment(f *testing.F) {
	for _, seed := range []string{
		"", "muster: {resources: []}\n", "protocol: io.muster.v1.assignment\nmanifest: |\n  muster: {}\n",
		"protocol: io.muster.v1.assignment\nbundle: sha256-x\nnoop: yes\n", `{"protocol": "io.muster.v1.assignment", "manifest": "x", "data": {"a": [1, {"b": null}]}}`,
		`{"payloadType": "x", "payload": "y", "signatures": []}`, "protocol: [\n", "protocol: &a\n  x: *a\n", "- protocol\n", "protocol: io.muster.v1.assignment\nmanifest: a\ndata:\n  <<: {a: b}\n  ? [x]\n  : y\n",
		"protocol: io.muster.v1.assignment\nmanifest: a\nexpires: 2030-01-01T00:00:00Z\ninterval: 5m\npriority: 3\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, problems := parseAssignment(model.Entry{Key: "node.n.name", Revision: 1, Value: data})
		if (a == nil) != (len(problems) > 0) {
			t.Fatalf("an assignment %v with problems %v", a, problems)
		}
		for _, p := range problems {
			if p.Message == "" || p.Pos.File != "node.n.name" {
				t.Fatalf("a problem without words or place: %+v", p)
			}
		}
		if a != nil && (a.digest == "" || a.sum == "" || (a.Manifest != "" && a.Bundle != "")) {
			t.Fatalf("accepted: %+v", a)
		}
	})
}

// FuzzConfig reads any configuration: what is accepted is valid, and comes back
// from the example that is written of it.
func FuzzConfig(f *testing.F) {
	example, err := ExampleConfig(DefaultConfig("web01"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{"", "node: a", "groups: [a, b]\nlabels: {a: b}\n", "nats: {servers: [x]}", "interval: 1h30m\nstate_ttl: 5m\n", "node: [", "? x\n: y", "&a node: *a"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseConfig("agent.yaml", data, "web01")
		if err != nil {
			if len(model.AsProblems(err)) == 0 {
				t.Fatalf("no problems in %v", err)
			}
			return
		}
		if err := c.Validate().Err(); err != nil {
			t.Fatalf("accepted, and not valid: %v", err)
		}
		text, err := ExampleConfig(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseConfig("agent.yaml", text, "web01")
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if want, err := ExampleConfig(again); err != nil || string(want) != string(text) {
			t.Fatalf("%s\ncomes back as\n%s", text, want)
		}
	})
}
