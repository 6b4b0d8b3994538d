package fleetcmd

import (
	"context"
	"log/slog"
	"sync"

	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// NewPreviewAsker returns what sends a preview to nodes and decodes their answers, equal plans once, signed where
// signer is not nil.
func NewPreviewAsker(store *kvstore.Store, signer *assign.Signing, request model.PreviewRequest, log *slog.Logger) Asker {
	content, failed := model.EncodeJSON(request) // once: it may be long, and the nodes many
	var mu sync.Mutex
	var decoder ask.PreviewDecoder

	return Asker{
		Store: store, Log: log, Verb: kvstore.VerbPreview,
		Encode: func(ctx context.Context, family string) ([]byte, error) {
			if failed != nil || signer == nil {
				return content, failed
			}
			return signer.Preview(ctx, family, content, request.Expires)
		},
		Decode: func(data []byte) (model.EnsureResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			return decoder.Decode(data)
		},
	}
}
