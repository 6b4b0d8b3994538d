package agent_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/signtest"
)

// unhashable is YAML that makes a parser panic when it merges mappings.
const unhashable = `{<<, {0}}`

// TestRequestsThatParsersPanicOn: a request of an operator that no parser foresaw is
// rejected with its reason, by an agent with and without trusted keys.
func TestRequestsThatParsersPanicOn(t *testing.T) {
	for name, trusts := range map[string]bool{"unsigned": false, "trust": true} {
		t.Run(name, func(t *testing.T) {
			alice := signtest.Signer(t)
			bubble(t, func(t *testing.T, n *node) {
				if trusts {
					n.trusts(1, alice)
				}
				n.start()
				if a := n.ask([]byte(unhashable)); a.last().Phase != model.EnsureFailed || a.last().Error == "" {
					t.Errorf("answered %+v", a.last())
				}
				n.take()
				if err := n.agent.Requests().Command(t.Context(), nil, "evil1", []byte(unhashable)); err != nil {
					t.Error(err)
				}
				n.settle()
				reported := n.take()
				if len(reported) == 0 || reported[0].CorrelationID != "evil1" || reported[0].Outcome != "failed" {
					t.Errorf("reported %+v", reported)
				}
				// It waits in the stream, and comes again at each start.
				n.stop()
				n.start()
				n.take()
				if err := n.agent.Requests().Command(t.Context(), nil, "evil1", []byte(unhashable)); err != nil {
					t.Error(err)
				}
				n.settle()
				n.tells()
				if !trusts {
					n.ask(n.request("r1", "motd", "asked", ""))
					n.has("motd", "asked")
				}
			})
		})
	}
}

// TestARejectedCommandRejectsNoOther: another request with the same id is judged on its own.
func TestARejectedCommandRejectsNoOther(t *testing.T) {
	bubble(t, func(t *testing.T, n *node) {
		n.start()
		n.take()
		n.command([]byte(strings.Replace(string(n.request("c1", "motd", "x", "")), "{", `{"nop": true, `, 1)))
		n.tells("ensure failed")
		n.command(n.request("c1", "motd", "asked", ""))
		n.has("motd", "asked")
	})
}
