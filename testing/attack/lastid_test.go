package attack

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
)

const lastMessageID = "with nats-server 2.15.2, everyone with write access to a stream of several replicas can stop it with one message that expects another last message id. " +
	"The servers agree on the message before they find the mismatch, treat it as damage, and stop writing, even after a restart. Permissions cannot prevent " +
	"it. Streams with one replica are safe."

// A failure of this test means that the server is fixed. Then remove lastMessageID.
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
			// The server of the client may lose sight of the leader for a moment.
			led := func(header nats.Header) (err error) {
				kvtest.Eventually(t, "leader", func() (bool, string) {
					err = put(header, kvtest.Deadline)
					return !errors.Is(err, nats.ErrNoResponders), fmt.Sprint(err)
				})
				return err
			}
			if err := led(nats.Header{nats.ExpectedLastMsgIdHdr: {"none"}}); err != nil {
				t.Fatal(err)
			}
			if l.replicas == 1 {
				if err := led(nil); err != nil {
					t.Errorf("put afterwards: %v", err)
				}
				return
			}
			if err := put(nil, deaf); err == nil { // no answer comes
				t.Error("the stream takes a put afterwards")
			}
			f.recreate(t, "KV_MUSTER_NODES")
			kvtest.Eventually(t, "put after it was recreated", func() (bool, string) {
				err := put(nil, deaf)
				return err == nil, fmt.Sprint(err)
			})
		})
	}
}

// recreate removes a stream that was ended and has it provisioned again, as docs/guides/troubleshooting.md says.
func (f *fleet) recreate(t *testing.T, name string) {
	t.Helper()
	admin := f.connect(t, "admin", 0)
	m := kvtest.Must(t, func() (*jsm.Manager, error) { return jsm.New(admin) })
	if err := m.DeleteStream(name); err != nil {
		t.Fatal(err)
	}
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(admin, "") })
	kvtest.Must(t, func() ([]provision.Difference, error) {
		return store.Apply(t.Context(), provision.Options{Replicas: 3})
	})
}
