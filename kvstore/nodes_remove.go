package kvstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Remove removes the state, facts and inventory of a node. Marks take their place, for as long as the server
// would have kept the state: one that is killed may find again what is below a mark that is gone. Of a
// state that does not expire the marks stay.
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

// marked returns how long the marks of a node stay.
func (b Nodes) marked(ctx context.Context, node string) ([]jetstream.PublishOpt, error) {
	state, err := b.State(ctx, node)
	switch {
	case errors.Is(err, model.ErrNotFound), errors.Is(err, ErrInvalidState), errors.Is(err, ErrUnreadable), errors.Is(err, ErrServerHeaders):
		// What a node stored of itself does not keep it.
	case err != nil:
		return nil, fmt.Errorf("remove node %s: %w", node, err)
	case state.SilentAfter == 0:
		return nil, nil
	}

	return []jetstream.PublishOpt{jetstream.WithMsgTTL(stateTTL(state.SilentAfter.Std()))}, nil
}
