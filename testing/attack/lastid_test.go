package attack

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/testing/kvtest"
)

const lastMessageID = "with nats-server 2.15.2, whoever may write to a stream of several replicas ends it by one message that expects another last message id. " +
	"Its servers have agreed on the message before they see that it does not fit, take that for damage, and write no more, not even after a restart. " +
	"No permission helps; with one replica it does not happen."

// When this test fails, the server is mended, and what lastMessageID says can go.
func TestLastMessageIDEndsReplicatedStream(t *testing.T) {
	t.Parallel()
	type layout struct {
		user     string
		replicas int
	}
	layouts := map[string]layout{"node, three replicas": {attacking, 3}}
	if whole() {
		layouts["operator, three replicas"] = layout{operating, 3}
		layouts["node, one replica"] = layout{attacking, 1}
	}
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := clusterOf(t, l.replicas)
			a := f.attacker(t, l.user, l.user)
			put := func(header nats.Header, patience time.Duration) error {
				_, err := a.nc.RequestMsg(&nats.Msg{Subject: a.own(), Header: header, Data: []byte("{}")}, patience)
				return err
			}
			kvtest.Eventually(t, "first put", func() (bool, string) {
				err := put(nil, deaf)
				return err == nil, fmt.Sprint(err)
			})
			if err := put(nats.Header{nats.ExpectedLastMsgIdHdr: {"none"}}, kvtest.Deadline); err != nil {
				t.Fatal(err)
			}
			patience := kvtest.Deadline
			if l.replicas > 1 {
				patience = deaf // no answer comes
			}
			if err := put(nil, patience); (err != nil) != (l.replicas > 1) {
				t.Errorf("put afterwards: %v", err)
			}
		})
	}
}
