package attack

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/testing/kvtest"
)

const messageIDs = "a node stores its state or registrations repeatedly, each time with a new message id of up to 60 KB (state) or 30 KB (registration). The server holds " +
	"these ids in memory to detect duplicates. It frees an id after a tenth of a second, and accepts it again; in reports, where ids prevent duplicates, " +
	"after two minutes."

// TestMessageIDsAreForgotten: the server frees the memory for message ids of deleted messages soon.
func TestMessageIDsAreForgotten(t *testing.T) {
	t.Parallel()
	g := kvtest.ByConfig(t)
	node := g.Connect(t, "web01")
	for subject, size := range map[string]int{g.Admin.Names.NodeState("web01"): 60_000, "muster.registration.lab.http.site.web01.192_0_2_1.80": 30_000} {
		m := kvstore.NewMsg(subject, []byte("{}"))
		m.Header.Set(nats.MsgIdHdr, strings.Repeat("x", size))
		store := func() jetstream.PubAck {
			reply, err := node.RequestMsg(m, kvtest.Deadline)
			var ack jetstream.PubAck
			if err := errors.Join(err, json.Unmarshal(reply.Data, &ack)); err != nil {
				t.Fatal(err)
			}
			return ack
		}
		if first := store(); first.Sequence == 0 || first.Duplicate {
			t.Fatalf("%s: %+v", subject, first)
		}
		kvtest.Eventually(t, "its id is forgotten", func() (bool, string) { return !store().Duplicate, "still a duplicate" })
	}
}
