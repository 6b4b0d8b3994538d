package kvstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestOneOfManyReplacesOnACluster: the second writer gets a conflict, even before the servers agree on the
// first write. A reader gets the newest value.
func TestOneOfManyReplacesOnACluster(t *testing.T) {
	t.Parallel()
	servers := natstest.StartCluster(t, "")
	stores := make([]*kvtest.Store, 6)
	for i := range stores {
		nc := servers[i%len(servers)].Connect(t)
		stores[i] = kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
	}
	kvtest.Eventually(t, "provisioned", func() (bool, string) {
		_, err := stores[0].Apply(t.Context(), provision.Options{Replicas: 3})
		return err == nil, fmt.Sprint(err)
	})
	const key = "group.web.app"
	revision := kvtest.Must(t, func() (uint64, error) { return stores[0].Put(t.Context(), key, []byte("first")) })
	for round := range 30 {
		won := make([]uint64, len(stores))
		var all sync.WaitGroup
		for i, store := range stores {
			all.Go(func() {
				switch at, err := store.Replace(t.Context(), model.Entry{Key: key, Revision: revision}, []byte(fmt.Sprint(round, i)), false); {
				case err == nil:
					won[i] = at
				case !errors.Is(err, kvstore.ErrAssignmentChanged):
					t.Errorf("round %d: %v", round, err)
				}
				if e, err := store.Current(t.Context(), key); err != nil || e.Revision < revision {
					t.Errorf("round %d: %+v, %v", round, e, err)
				}
			})
		}
		all.Wait()
		winners := 0
		for _, at := range won {
			if at > 0 {
				winners++
				revision = at
			}
		}
		if winners != 1 {
			t.Fatalf("round %d: %d replaced it", round, winners)
		}
		for i, store := range stores {
			if e, err := store.Current(t.Context(), key); err != nil || e.Revision != revision {
				t.Errorf("round %d: store %d: %+v, %v, want revision %d", round, i, e, err, revision)
			}
		}
	}
}
