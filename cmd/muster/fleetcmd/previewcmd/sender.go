package previewcmd

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/preview"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
)

// sender sends a preview to nodes, signed where signer is not nil.
type sender struct {
	store   *kvstore.Store
	signer  *signing.Signing
	request model.PreviewRequest
	log     *slog.Logger

	mu      sync.Mutex
	decoder preview.Decoder
}

// NewAsker returns what sends a preview to nodes and decodes their answers, equal plans once, signed where
// signer is not nil.
func NewAsker(store *kvstore.Store, signer *signing.Signing, request model.PreviewRequest, log *slog.Logger) fleet.Asker {
	return &sender{store: store, signer: signer, request: request, log: log}
}

// Ask sends the preview to the nodes of a target.
func (s *sender) Ask(ctx context.Context, target fleet.Target, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	return s.ask(ctx, []string{target.String()})
}

// AskNodes sends the preview to each of some nodes.
func (s *sender) AskNodes(ctx context.Context, nodes []string, _ model.EnsureRequest) iter.Seq2[model.EnsureResponse, error] {
	families := make([]string, len(nodes))
	for i, n := range nodes {
		families[i] = model.NodeFamily(n)
	}

	return s.ask(ctx, families)
}

func (s *sender) ask(ctx context.Context, families []string) iter.Seq2[model.EnsureResponse, error] {
	return func(yield func(model.EnsureResponse, error) bool) {
		content, err := model.EncodeJSON(s.request)
		all := make([]requests.Request, len(families))
		for i, family := range families {
			data := content
			if err == nil && s.signer != nil {
				data, err = s.signer.Preview(ctx, family, content, s.request.Expires)
			}
			all[i] = requests.Request{Subject: s.store.Names().Request(kvstore.VerbPreview, family), Data: data}
		}
		if err != nil {
			yield(model.EnsureResponse{}, err)
			return
		}
		for reply, err := range requests.New(s.store).AskEach(ctx, all) {
			switch {
			case errors.Is(err, requests.ErrNobody):
				// Nodes without an answer show that nobody is there.
				return
			case errors.Is(err, requests.ErrLost):
				s.log.Warn("answers may be lost", "target", print.Some(families, "and others"), "error", err)
				continue
			case err == nil && reply.Node == "":
				// An answer that no node proved to be its own does not count.
				continue
			}
			if !yield(s.decode(reply), err) {
				return
			}
		}
	}
}

// decode decodes an answer; an invalid one is that of a failure.
func (s *sender) decode(r requests.Reply) model.EnsureResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out model.EnsureResponse
	var err error
	if r.Problem != "" {
		err = errors.New(r.Problem)
	} else {
		out, err = s.decoder.Decode(r.Data)
	}
	if err != nil {
		out = model.EnsureResponse{ID: s.request.ID, Phase: model.EnsureFailed, Error: err.Error()}
	}
	out.Node = r.Node

	return out
}
