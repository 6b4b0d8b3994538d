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
	"time"

	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/resources/host/files"
)

// writeAgain is after how long a file is written again that could not be.
const writeAgain = time.Second

// keepTargets gives what writes registrations for the file discovery of
// Prometheus whenever they are others, and what ends that. The error is that it
// cannot be written the first time; later on that is told, and tried again.
func (a *app) keepTargets(ctx context.Context, file string) (write func([]registrations.Registered) error, end func()) {
	newest, ended, first := make(chan []registrations.Registered), make(chan struct{}), true
	go func() {
		defer close(ended)
		a.writeNewest(ctx, file, newest)
	}()
	write = func(all []registrations.Registered) error {
		if first {
			first = false
			return a.writeTargets(ctx, file, all)
		}
		newest <- all
		return nil
	}

	return write, func() {
		close(newest)
		<-ended
	}
}

// writeNewest writes what comes, until no more does.
func (a *app) writeNewest(ctx context.Context, file string, newest <-chan []registrations.Registered) {
	var all []registrations.Registered
	var again <-chan time.Time
	failed := false
	for open := true; ; {
		select {
		case all, open = <-newest:
		case <-again:
		}
		if !open {
			return
		}
		err := a.writeTargets(ctx, file, all)
		switch {
		case err != nil:
			if !failed {
				a.log.Warn("the file is not up to date, it is tried again", "error", err)
			}
			again = time.After(writeAgain)
		case failed:
			a.log.Info("the file is written again", "file", file)
			again = nil
		}
		failed = err != nil
	}
}

// fileTargets is an entry of a file for the file discovery of Prometheus.
type fileTargets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// writeTargets writes registrations for the file discovery of Prometheus, all at
// once. The file is not touched where nothing is different.
func (a *app) writeTargets(ctx context.Context, file string, all []registrations.Registered) error {
	slices.SortFunc(all, func(x, y registrations.Registered) int {
		return strings.Compare(registrationWords(x), registrationWords(y))
	})
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
	attrs := files.OwnAttrs(0o644)
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
func labels(r registrations.Registered) map[string]string {
	out := map[string]string{"cluster": r.Cluster, "service": r.Service, "protocol": r.ProtocolName, "node": r.Node, "__meta_muster_priority": strconv.Itoa(r.Priority)}
	for label, keys := range annotationsByLabel(r) {
		out[label] = r.Annotations[keys[0]]
	}

	return out
}

// annotationsByLabel gives the keys of annotations, in their order, by the label
// that each becomes.
func annotationsByLabel(r registrations.Registered) map[string][]string {
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
