// Package live sends requests to nodes that answer at once, for the commands that do so and
// for the dashboard.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// Ask sends a request to the nodes of some families by a verb, and yields their answers, which
// nodes proved to be their own. encode returns the message to a family.
func Ask(ctx context.Context, store *kvstore.Store, log *slog.Logger, verb string, families []string, encode func(family string) ([]byte, error)) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		all := make([]requests.Request, len(families))
		for i, family := range families {
			data, err := encode(family)
			if err != nil {
				yield(model.EnsureResponse{}, err)
				return
			}
			all[i] = requests.Request{Subject: store.Names().Request(verb, family), Data: data}
		}
		for reply, err := range requests.New(store).AskEach(ctx, all) {
			switch {
			case errors.Is(err, requests.ErrNobody):
				// Nodes without an answer show that nobody is there.
				return
			case errors.Is(err, requests.ErrLost):
				log.Warn("answers may be lost", "target", print.Some(families, "and others"), "error", err)
				continue
			case err == nil && reply.Node == "":
				// An answer that no node proved to be its own does not count.
				continue
			case reply.Flood:
				log.Warn("node floods its answers, the rest is dropped", "node", reply.Node)
			}
			if !yield(decodeResponse(reply), err) {
				return
			}
		}
	}
}

// Families returns those of nodes.
func Families(nodes []string) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = model.NodeFamily(n)
	}

	return out
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

// Runs sends one run request to nodes, signed where Signer is not nil. It is a fleet.Asker,
// which is given the request here.
type Runs struct {
	Store   *kvstore.Store
	Signer  *signing.Signing
	Log     *slog.Logger
	Request model.RunRequest
}

// Ask sends the request to the nodes of a target.
func (r Runs) Ask(ctx context.Context, target fleet.Target, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return r.ask(ctx, []string{target.String()})
}

// AskNodes sends the request to each of some nodes.
func (r Runs) AskNodes(ctx context.Context, nodes []string, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return r.ask(ctx, Families(nodes))
}

func (r Runs) ask(ctx context.Context, families []string) iter.Seq2[model.EnsureResponse, error] {
	return Ask(ctx, r.Store, r.Log, kvstore.VerbRun, families, func(family string) ([]byte, error) {
		data, err := model.EncodeJSON(r.Request)
		if err != nil || r.Signer == nil {
			return data, err
		}
		return r.Signer.Run(ctx, family, data, r.Request.Expires)
	})
}
