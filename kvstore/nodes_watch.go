package kvstore

import (
	"context"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// NodeChange is a change of a node.
type NodeChange = model.NodeChange

// Watch yields the stored states in any order, and then each state that is stored or removed until ctx
// ends. An unreadable state yields an Unreadable node. Watch does not yield expiries and may miss a
// change in an outage, so a long-running caller also calls Nodes from time to time. An error is the
// last item.
func (b Nodes) Watch(ctx context.Context) iter.Seq2[NodeChange, error] {
	return func(yield func(NodeChange, error) bool) {
		names := b.store.Names()
		cfg := jetstream.OrderedConsumerConfig{FilterSubjects: []string{names.NodeState("*")}}
		for m, err := range scanStream(ctx, b.store, b.stream(), cfg, true) {
			if err != nil {
				yield(NodeChange{}, err)
				return
			}
			node := stateNode(names, m.Subject)
			c := NodeChange{Gone: m.Deleted() && !m.Forged}
			if c.Node.Node = node; !c.Gone {
				c.Node, _ = decodeState(node, m, time.Now()) // on error the node is Unreadable
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Stored yields the nodes with a stored state, in any order. It may miss a state with unreadable
// headers, or one that a replica lacks. An error is the last item.
func (b Nodes) Stored(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names := b.store.Names()
		for m, err := range scanDirect(ctx, b.store, b.stream(), names.NodeState("*"), statePage) {
			if err != nil {
				yield("", err)
				return
			}
			if (!m.Deleted() || m.Forged) && !yield(stateNode(names, m.Subject), nil) {
				return
			}
		}
	}
}
