package fleetcmd

import (
	"context"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// sender sends and queues requests, signed where signer is not nil.
type sender struct {
	*kvstore.Store
	signer *assign.Signing
	log    *slog.Logger
	from   model.Sender
}

// asker returns what sends a request to nodes at once.
func (s sender) asker(req model.EnsureRequest) Asker {
	return Asker{Store: s.Store, Log: s.log, Verb: kvstore.VerbEnsure, Sender: s.from, Encode: func(ctx context.Context, family string) ([]byte, error) {
		return s.encode(ctx, family, req)
	}}
}

// queue stores a request for a target, under its id, by which it can be cancelled there.
func (s sender) queue(ctx context.Context, target fleet.Target, req model.EnsureRequest, ttl time.Duration) error {
	req.Expires = time.Now().Add(ttl).UTC()
	data, err := s.encode(ctx, target.String(), req)
	if err != nil {
		return err
	}

	return requests.New(s.Store).From(s.from).PutCommand(ctx, target.String(), req.ID, data, ttl)
}

// queueMissing queues the request for the nodes that did not answer. The connection
// may be lost just now: whoever floods the answers can do that.
func (s sender) queueMissing(ctx context.Context, result *ask.Ensured, req model.EnsureRequest, ttl time.Duration) error {
	for i, node := range result.Missing {
		queue := func() error { return s.queue(ctx, fleet.Target{Node: node}, req, ttl) }
		err := queue()
		if err != nil && s.reconnected(ctx) {
			err = queue()
		}
		if err != nil {
			result.Missing = result.Missing[i:]
			return err
		}
		result.Queued = append(result.Queued, node)
	}
	result.Missing = nil

	return nil
}

// reconnectTime is how long a lost connection is waited for.
const reconnectTime = 15 * time.Second

// reconnected waits for a lost connection, and reports whether there is one.
func (s sender) reconnected(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, reconnectTime)
	defer cancel()
	again := time.NewTicker(reconnectTime / 100)
	defer again.Stop()
	for s.Away() != nil {
		select {
		case <-again.C:
		case <-ctx.Done():
			return false
		}
	}

	return true
}

// encode returns the message of a request to the nodes of a family.
func (s sender) encode(ctx context.Context, family string, req model.EnsureRequest) ([]byte, error) {
	data, err := model.EncodeJSON(req)
	if err != nil || s.signer == nil {
		return data, err
	}

	return s.signer.Request(ctx, family, data, req.Expires)
}
