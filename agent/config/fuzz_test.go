package config

import (
	"net/netip"
	"testing"

	"github.com/musterfleet/muster/model"
)

// FuzzConfig parses any text: an accepted configuration is valid, and parsing its example returns it
// unchanged.
func FuzzConfig(f *testing.F) {
	example, err := Example(Default("web01"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	for _, seed := range []string{"", "node: a", "groups: [a, b]\nlabels: {a: b}\n", "nats: {servers: [x]}", "interval: 1h30m\nstate_ttl: 5m\n", "node: [", "? x\n: y", "metrics: {listen: '127.0.0.1:1'}", "metrics: {listen: 'unix:/x'}", "&a node: *a"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("agent.yaml", data, Default("web01"))
		if err != nil {
			if len(model.AsProblems(err)) == 0 {
				t.Fatalf("no problems in %v", err)
			}
			return
		}
		if err := c.Validate().Err(); err != nil {
			t.Fatalf("accepted, and not valid: %v", err)
		}
		if network, address, _ := c.Metrics.Address(); network == "tcp" && !netip.MustParseAddrPort(address).Addr().IsLoopback() {
			t.Fatalf("metrics would be served at %s", address)
		}
		text, err := Example(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("agent.yaml", text, Default("web01"))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if want, err := Example(again); err != nil || string(want) != string(text) {
			t.Fatalf("%s\ncomes back as\n%s", text, want)
		}
	})
}
