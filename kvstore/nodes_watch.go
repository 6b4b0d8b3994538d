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

// Watch yields the states that are stored, in no order, and then each one that a node stores or
// somebody removes, until ctx ends. One that cannot be read is an Unreadable node. A state that
// expires is not announced, and in an outage one may be missed: whoever keeps the fleet for long
// calls Nodes now and then. An error is the last thing it yields.
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
				c.Node, _ = decodeState(node, m, time.Now()) // it is Unreadable then
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Stored yields the nodes that have stored a state which is still there, in no order. One whose
// state has headers that cannot be read, or that a replica does not know yet, may be missing. An
// error is the last thing it yields.
func (b Nodes) Stored(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names := b.store.Names()
		for m, err := range b.boundOfStates().Of(scanDirect(ctx, b.store, b.stream(), names.NodeState("*"), statePage)) {
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
