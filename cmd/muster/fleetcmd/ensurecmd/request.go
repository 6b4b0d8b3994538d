package ensurecmd

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// sender sends requests to nodes, signed where signer is not nil.
type sender struct {
	*kvstore.Store
	signer *signing.Signing
}

// Ask sends an ensure request to the nodes of a target.
func (s sender) Ask(ctx context.Context, target fleet.Target, req model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		data, err := s.encode(ctx, target.String(), req)
		if err != nil {
			yield(model.EnsureResponse{}, err)
			return
		}
		for reply, err := range requests.New(s.Store).Ask(ctx, s.Names().Request(kvstore.VerbEnsure, target.String()), data) {
			// Nodes without an answer show that nobody is there.
			if errors.Is(err, requests.ErrNobody) {
				return
			}
			// An answer that no node proved to be its own does not count.
			if err == nil && reply.Node == "" {
				continue
			}
			if !yield(decodeResponse(reply), err) {
				return
			}
		}
	}
}

// queue stores a request for a target.
func (s sender) queue(ctx context.Context, target fleet.Target, id string, req model.EnsureRequest, ttl time.Duration) error {
	req.Expires = time.Now().Add(ttl).UTC()
	data, err := s.encode(ctx, target.String(), req)
	if err != nil {
		return err
	}

	return requests.New(s.Store).PutCommand(ctx, target.String(), id, data, ttl)
}

// encode returns the message of a request to the nodes of a family.
func (s sender) encode(ctx context.Context, family string, req model.EnsureRequest) ([]byte, error) {
	data, err := model.EncodeJSON(req)
	if err != nil || s.signer == nil {
		return data, err
	}

	return s.signer.Request(ctx, family, data, req.Expires)
}

// decodeResponse decodes an answer; an invalid one is that of a failure.
func decodeResponse(r requests.Reply) model.EnsureResponse {
	var out model.EnsureResponse
	err := json.Unmarshal(r.Data, &out)
	switch {
	case r.Problem != "":
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: r.Problem}
	case err != nil:
		out = model.EnsureResponse{Phase: model.EnsureFailed, Error: "invalid answer: " + err.Error()}
	}
	out.Node = r.Node

	return out
}
