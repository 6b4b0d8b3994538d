package provision_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/kvtest"
)

// TestNodesAnswerNowhereElse: a requester cannot make a node publish its answer to the node's own subjects,
// nor to subjects of others that the response permission would allow.
func TestNodesAnswerNowhereElse(t *testing.T) {
	t.Parallel()
	onJoinedGuards(t, func(t *testing.T, g kvtest.Guarded) {
		accepted := servingOn(t, g)
		s := kvtest.BindTo(t, g.Connect(t, kvtest.Requester))
		requester(t, s, accepted)
		all := listen(t, g.Admin.Conn)
		targets := []string{
			"$KV.MUSTER_NODES.web01.state", "$KV.MUSTER_NODES.web02.state", "$KV.MUSTER_NODES.web02.facts", "$KV.MUSTER_NODES.web01.inventory", "$KV.MUSTER_NODES.web02.inventory", "muster.report.web01.run.stable", "muster.report.web02.run.stable",
			"muster.registration.a.b.c.web02.d.1", "muster.reply.x.web02", "muster.reply.x.web01", "muster.reply.x.y.=", "muster.run.node.web02", "muster.command.node.web02.x",
		}
		for _, target := range targets {
			if err := s.Conn.PublishRequest("muster.run.node.web01", target, []byte("evil")); err != nil {
				t.Fatal(err)
			}
		}
		// Earlier messages are answered before this one.
		phases(t, s, []string{"muster.run.node.web01"}, "web01")
		for _, m := range all(targets) {
			t.Errorf("the node answered on %s", m)
		}
		for _, key := range []string{"web01.state", "web02.state"} {
			if e, err := kvtest.PlainKV(t, g.Admin.Conn, "MUSTER_NODES").Get(t.Context(), key); err == nil && strings.Contains(string(e.Value()), "phase") {
				t.Errorf("%s is %s", key, e.Value())
			}
		}
	})
}
