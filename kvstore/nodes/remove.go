package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// markedFor is how long the marks of a removal stay, by which whoever follows the states
// notices it.
const markedFor = time.Minute

// Remove removes the state and the facts of a node. What marks that is gone a minute later.
func (b Bucket) Remove(ctx context.Context, node string) error {
	if err := model.CheckNode(node, nil); err != nil {
		return err
	}
	n := b.store.Names()
	for _, subject := range []string{n.NodeState(node), n.NodeFacts(node)} {
		if _, err := b.store.Publish(ctx, kvstore.NewDeletion(subject), jetstream.WithMsgTTL(markedFor)); err != nil {
			return fmt.Errorf("remove node %s: %w", node, err)
		}
	}

	return nil
}
