package manifest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest/expression"
)

// registered is the list of mappings that the function registrations returns.
type registered []any

// newRegistered returns the list. Each field also has a key in CamelCase, for CCM manifests.
func newRegistered(all []registration.Registration) registered {
	out := registered{}
	for _, r := range all {
		item := map[string]any{"node": r.Node}
		for key, value := range map[string]any{
			"Cluster": r.Cluster, "Service": r.Service, "Protocol": r.ProtocolName, "Address": r.Address, "Port": r.Port,
			"Priority": r.Priority, "TTL": r.TTL.String(), "Annotations": annotationsOf(r.Annotations),
		} {
			item[key], item[strings.ToLower(key)] = value, value
		}
		out = append(out, item)
	}

	return out
}

func annotationsOf(all map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range all {
		out[key] = value
	}

	return out
}

// PrometheusFileSD returns the list as JSON for the file discovery of Prometheus.
func (r registered) PrometheusFileSD() (string, error) {
	all := make([]registration.Registration, len(r))
	for i, item := range r {
		m := item.(map[string]any)
		all[i] = registration.Registration{
			Cluster: m["cluster"].(string), Service: m["service"].(string), ProtocolName: m["protocol"].(string),
			Address: m["address"].(string), Port: m["port"].(int), Priority: m["priority"].(int), Node: m["node"].(string),
			Annotations: map[string]string{},
		}
		for key, value := range m["annotations"].(map[string]any) {
			all[i].Annotations[key] = value.(string)
		}
	}
	text, err := json.MarshalIndent(registration.Targets(all), "", "  ")

	return string(text), err
}

// registrations implements the function registrations. It returns a list of mappings, the lowest
// priority number first. Equal arguments are requested once per document.
func (w *evaluator) registrations(ctx context.Context, words ...string) (any, error) {
	w.setDynamic()
	if w.opts.Registrations == nil {
		return nil, expression.WithHint(fmt.Errorf("registrations %w", errNoNATS), noNATSHint)
	}
	for i, key := range []string{"cluster", "protocol", "service", "address"} {
		if words[i] == "" {
			return nil, expression.WithHint(fmt.Errorf("registrations: its %s is empty", key), "write '*' for any")
		}
	}
	text, err := w.cached("registrations:"+strings.Join(words, "\x00"), func() (string, error) {
		found, err := w.opts.Registrations(ctx, words[0], words[1], words[2], words[3])
		if err != nil {
			return "", fmt.Errorf("registrations: %w", err)
		}
		text, err := json.Marshal(found)
		return string(text), err
	})
	if err != nil {
		return nil, err
	}

	var all []registration.Registration
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}

	return newRegistered(all), nil
}
