package kvstore

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Remove removes all reports of a node. Only administrators may do that.
func (s Reports) Remove(ctx context.Context, node string) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	stream, err := s.store.JetStream().Stream(ctx, s.store.Names().Reports())
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(s.store.Names().Report(node, "*", "*")))
	}
	if err != nil {
		return fmt.Errorf("remove the reports of node %s: %w", node, err)
	}

	return nil
}
