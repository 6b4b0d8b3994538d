package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// registrations is the function registrations: a list of mappings, that of the
// lowest priority number first. What it asks for is asked once in a document.
func (w *world) registrations(ctx context.Context, words ...string) (any, error) {
	w.setDynamic()
	if w.opts.Registrations == nil {
		return nil, withHint(fmt.Errorf("registrations %w", errNoNATS), noNATSHint)
	}
	for i, key := range []string{"cluster", "protocol", "service", "address"} {
		if words[i] == "" {
			return nil, withHint(fmt.Errorf("registrations: its %s is empty", key), "write '*' for any")
		}
	}
	text, err := w.cached("registrations:"+strings.Join(words, "\x00"), func() (string, error) {
		found, err := w.opts.Registrations(ctx, words[0], words[1], words[2], words[3])
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
