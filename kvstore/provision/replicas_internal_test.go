package provision

import (
	"errors"
	"testing"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/testing/natstest"
)

func TestIncompleteReplicas(t *testing.T) {
	t.Parallel()
	store, err := kvstore.Open(t.Context(), connect.Options{Servers: []string{natstest.Start(t).URL()}}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Conn.Close)
	p := New(store)
	made, err := p.Apply(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.awaitReplicas(t.Context(), made, 0); err != nil {
		t.Error(err)
	}
	changed := []Difference{made[0], {Stream: store.Names.Reports, config: api.StreamConfig{Replicas: 3}}}
	err = p.awaitReplicas(t.Context(), changed, 0)
	if !errors.Is(err, ErrReplicas) || err.Error() != "stream MUSTER_REPORTS: some replicas are incomplete after 0s" {
		t.Error(err)
	}
}
