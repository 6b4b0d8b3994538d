package kvstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Remove removes the state, facts and inventory of a node. It stores removal markers for as long as
// the server would have stored the state. If a marker expired earlier, a killed server could restore
// the removed document. The markers of a state without an expiry stay forever.
func (b Nodes) Remove(ctx context.Context, node string) error {
	opts, err := b.marked(ctx, node)
	if err != nil {
		return err
	}
	n := b.store.Names()
	for _, subject := range []string{n.NodeState(node), n.NodeFacts(node), n.NodeInventory(node)} {
		if _, err := b.store.Publish(ctx, NewDeletion(subject), opts...); err != nil {
			return fmt.Errorf("remove node %s: %w", node, err)
		}
	}

	return nil
}

// marked returns the options of the removal markers of a node.
func (b Nodes) marked(ctx context.Context, node string) ([]jetstream.PublishOpt, error) {
	state, err := b.State(ctx, node)
	switch {
	case errors.Is(err, model.ErrNotFound), errors.Is(err, ErrInvalidState), errors.Is(err, ErrUnreadable), errors.Is(err, ErrServerHeaders):
		// A missing or invalid state has no TTL.
	case err != nil:
		return nil, fmt.Errorf("remove node %s: %w", node, err)
	case state.SilentAfter == 0:
		return nil, nil
	}

	return []jetstream.PublishOpt{jetstream.WithMsgTTL(stateTTL(state.SilentAfter.Std()))}, nil
}
