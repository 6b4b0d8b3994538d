package requests

import (
	"context"
	"encoding/json"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// unstoredTimeout is the time in which a node must answer UnstoredReason.
const unstoredTimeout = time.Second

// SilentServers returns the NATS servers that do not answer the others, with the time of their last answer.
func (s Client) SilentServers(ctx context.Context) (map[string]time.Time, error) {
	return s.store.SilentServers(ctx)
}

// LastStored returns when the bucket of nodes and the stream of reports stored their last messages.
func (s Client) LastStored(ctx context.Context) (states, reports model.LastStored, err error) {
	names := s.store.Names()
	last, err := s.store.LastStored(ctx, kvstore.KVStream(names.Nodes()), names.Reports())
	if err != nil {
		return states, reports, err
	}

	return last[0], last[1], nil
}

// IsAdministrator reports whether the user can send requests of all kinds.
func (s Client) IsAdministrator() bool { return s.store.Places().InUse().IsOwn() }

// UnstoredReason returns why the state of a node is not stored, as the node answers. It is empty if the node does not answer
// or its state is stored.
func (s Client) UnstoredReason(ctx context.Context, node string) string {
	ctx, cancel := context.WithTimeout(ctx, unstoredTimeout)
	defer cancel()
	for reply, err := range s.Ask(ctx, s.store.Names().Request(kvstore.VerbPing, model.NodeFamily(node)), nil) {
		if err != nil || reply.Node != node {
			continue
		}
		var state model.NodeState
		_ = json.Unmarshal(reply.Data, &state) // an older agent answers in another format

		return state.Unstored[model.UnstoredState]
	}

	return ""
}
