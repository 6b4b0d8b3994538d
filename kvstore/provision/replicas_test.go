package provision_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestNewReplicasHoldTheStreams: when Apply has added replicas, the streams survive the loss of the server
// that had them.
func TestNewReplicasHoldTheStreams(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	store := kvtest.Must(t, func() (*kvstore.Store, error) {
		return kvstore.Open(t.Context(), connect.Options{Servers: urls}, "")
	})
	t.Cleanup(store.Conn.Close)
	p := provision.New(store)
	for _, replicas := range []int{1, 3} {
		kvtest.Eventually(t, "provisioned", func() (bool, string) {
			_, err := p.Apply(t.Context(), provision.Options{Replicas: replicas})
			return err == nil, fmt.Sprint(err)
		})
	}
	servers[0].Stop()
	kvtest.Eventually(t, "all streams have a leader", func() (bool, string) {
		_, err := p.Plan(t.Context(), provision.Options{})
		return err == nil, fmt.Sprint(err)
	})
}
