package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/manifest/source"
)

// registrations is the function registrations: a list of mappings, that of the
// lowest priority number first. What it asks for is asked once in a document.
func (w *World) registrations(ctx context.Context, words ...string) (any, error) {
	w.SetDynamic()
	if w.Opts.Registrations == nil {
		return nil, expression.WithHint(fmt.Errorf("registrations %w", source.ErrNoNATS), source.NoNATSHint)
	}
	for i, key := range []string{"cluster", "protocol", "service", "address"} {
		if words[i] == "" {
			return nil, expression.WithHint(fmt.Errorf("registrations: its %s is empty", key), "write '*' for any")
		}
	}
	text, err := w.cached("registrations:"+strings.Join(words, "\x00"), func() (string, error) {
		found, err := w.Opts.Registrations(ctx, words[0], words[1], words[2], words[3])
		if err != nil {
			return "", fmt.Errorf("registrations: %w", err)
		}
		out := make([]map[string]any, len(found))
		for i, r := range found {
			out[i] = map[string]any{
				"cluster": r.Cluster, "protocol": r.ProtocolName, "service": r.Service, "address": r.Address, "port": r.Port,
				"priority": r.Priority, "ttl": r.TTL.String(), "annotations": r.Annotations, "node": r.Node,
			}
		}
		text, err := json.Marshal(out)
		return string(text), err
	})
	if err != nil {
		return nil, err
	}

	return fromJSON(text)
}
