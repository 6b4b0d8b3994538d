package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/resources/host"
)

// fileTargets is an entry of a file for the file discovery of Prometheus.
type fileTargets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// writeTargets writes registrations for the file discovery of Prometheus, all at
// once. The file is not touched where nothing is different.
func (a *app) writeTargets(ctx context.Context, file string, all []kvstore.Registered) error {
	slices.SortFunc(all, func(x, y kvstore.Registered) int { return strings.Compare(registrationWords(x), registrationWords(y)) })
	out := []fileTargets{}
	for _, r := range all {
		out = append(out, fileTargets{Targets: []string{net.JoinHostPort(r.Address, strconv.Itoa(r.Port))}, Labels: labels(r)})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	attrs := host.OwnAttrs(0o644)
	if err := a.host().Write(ctx, file, bytes.NewReader(text), attrs); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	for _, r := range all {
		for label, keys := range annotationsByLabel(r) {
			if len(keys) > 1 {
				a.log.Warn("annotations have the same label for Prometheus, the first is written", "label", label, "annotations", strings.Join(keys, ", "), "address", r.Address, "port", r.Port)
			}
		}
	}

	return nil
}

// labels gives the labels of a registration.
func labels(r kvstore.Registered) map[string]string {
	out := map[string]string{"cluster": r.Cluster, "service": r.Service, "protocol": r.ProtocolName, "node": r.Node, "__meta_muster_priority": strconv.Itoa(r.Priority)}
	for label, keys := range annotationsByLabel(r) {
		out[label] = r.Annotations[keys[0]]
	}

	return out
}

// annotationsByLabel gives the keys of annotations, in their order, by the label
// that each becomes.
func annotationsByLabel(r kvstore.Registered) map[string][]string {
	out := map[string][]string{}
	for _, k := range slices.Sorted(maps.Keys(r.Annotations)) {
		label := "__meta_muster_annotation_" + labelName(k)
		out[label] = append(out[label], k)
	}

	return out
}

// labelName makes of a text what Prometheus takes for the name of a label.
func labelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}
