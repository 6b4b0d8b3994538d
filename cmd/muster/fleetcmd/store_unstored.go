package fleetcmd

import (
	"context"
	"maps"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// Unstored returns which documents of the nodes the server does not store, and the silent servers without an
// earlier warning. It returns nothing if that is unknown.
func (s *Store) Unstored(ctx context.Context, nodes []model.Node) fleet.Unstored {
	if s.KV.Away() != nil {
		return fleet.Unstored{}
	}
	found, err := fleet.FindUnstored(ctx, requests.New(s.KV), func(yield func(*model.Node) bool) {
		for i := range nodes {
			if !yield(&nodes[i]) {
				return
			}
		}
	})
	if err != nil {
		s.log.Debug("cannot find out what NATS stores", "error", err)
	}
	maps.DeleteFunc(found.Silent, func(server string, _ time.Time) bool { return s.omitsNamed && !s.named.add(server) })

	return found
}
