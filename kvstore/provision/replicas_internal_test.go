package provision

import (
	"errors"
	"strings"
	"testing"

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
	if _, err := p.Apply(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := p.awaitReplicas(t.Context(), Options{Replicas: 1}, 0); err != nil {
		t.Error(err)
	}
	err = p.awaitReplicas(t.Context(), Options{Replicas: 3}, 0)
	if !errors.Is(err, ErrReplicas) || !strings.HasPrefix(err.Error(), "stream KV_MUSTER_MANIFESTS, ") || !strings.HasSuffix(err.Error(), ": some replicas are incomplete") {
		t.Error(err)
	}
}
