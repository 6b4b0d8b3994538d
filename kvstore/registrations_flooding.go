package kvstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Flooding returns the nodes that store more registrations than readers accept, each with a
// description. It returns nothing if the stream does not exist, and for users other than
// administrators, who cannot read headers alone.
func (s Registrations) Flooding(ctx context.Context) (map[string]string, error) {
	if !s.store.Places().InUse().IsOwn() {
		return nil, nil
	}
	counts := map[string]int{}
	for m, err := range scanStream(ctx, s.store, s.store.Names().Registrations(), jetstream.OrderedConsumerConfig{HeadersOnly: true}, false) {
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case !m.Deleted():
			counts[registrationNode(m.Subject)]++
		}
	}
	out := map[string]string{}
	for node, n := range counts {
		if n > MaxRegistrationsPerNode {
			out[node] = fmt.Sprintf("flooding: %d registrations, of which readers take %d", n, MaxRegistrationsPerNode)
		}
	}

	return out, nil
}
