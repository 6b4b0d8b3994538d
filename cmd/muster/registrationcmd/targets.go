package registrationcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/resources/host/files"
)

// retryAfter is the wait before a failed write is retried.
const retryAfter = time.Second

// keepTargets writes the file, and retries until that succeeds or ctx ends. What
// changes meanwhile waits in the subscription.
func (c *command) keepTargets(ctx context.Context, all []registrations.Registered) {
	for try := 0; ; try++ {
		err := c.writeTargets(ctx, all)
		switch {
		case err == nil && try > 0:
			c.Log.Info("Prometheus file written again", "file", c.prometheus)
			return
		case err == nil:
			return
		case try == 0:
			c.Log.Warn("cannot write the Prometheus file, will retry", "error", err)
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return
		}
	}
}

// fileTargets is an entry of a file for Prometheus file discovery.
type fileTargets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// writeTargets writes registrations for Prometheus file discovery. It does not
// touch a file that is up to date.
func (c *command) writeTargets(ctx context.Context, all []registrations.Registered) error {
	slices.SortFunc(all, func(x, y registrations.Registered) int { return strings.Compare(identity(x), identity(y)) })
	out := []fileTargets{}
	for _, r := range all {
		out = append(out, fileTargets{Targets: []string{net.JoinHostPort(r.Address, strconv.Itoa(r.Port))}, Labels: labels(r)})
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	file, err := filepath.Abs(c.prometheus)
	if err != nil {
		return err
	}
	switch old, err := files.Read(file, int64(len(text))); {
	case err == nil && bytes.Equal(old, text):
		return nil
	case errors.Is(err, files.ErrNotRegular):
		return fmt.Errorf("--prometheus: %w", err)
	}
	if err := c.Host().Write(ctx, file, bytes.NewReader(text), files.OwnAttrs(0o644)); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	for _, r := range all {
		for label, keys := range annotationsByLabel(r) {
			if len(keys) > 1 {
				c.Log.Warn("annotations with the same Prometheus label, only the first is written", "label", label, "annotations", strings.Join(keys, ", "), "address", r.Address, "port", r.Port)
			}
		}
	}

	return nil
}

// labels returns the labels of a registration.
func labels(r registrations.Registered) map[string]string {
	out := map[string]string{"cluster": r.Cluster, "service": r.Service, "protocol": r.ProtocolName, "node": r.Node, "__meta_muster_priority": strconv.Itoa(r.Priority)}
	for label, keys := range annotationsByLabel(r) {
		out[label] = r.Annotations[keys[0]]
	}

	return out
}

// annotationsByLabel returns the keys of annotations, sorted, by the label that
// each becomes.
func annotationsByLabel(r registrations.Registered) map[string][]string {
	out := map[string][]string{}
	for _, k := range slices.Sorted(maps.Keys(r.Annotations)) {
		label := "__meta_muster_annotation_" + labelName(k)
		out[label] = append(out[label], k)
	}

	return out
}

// labelName replaces what Prometheus does not accept in the name of a label.
func labelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}
