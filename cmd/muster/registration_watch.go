package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

func (a *app) registrationWatch(ctx context.Context, c *registrationCommand) error {
	store, err := a.store(ctx)
	if err != nil {
		return err
	}
	standing, complete := map[string]kvstore.Registered{}, false
	for r, err := range store.WatchRegistrations(ctx, c.filter) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errInterrupted):
			return nil
		case errors.Is(err, model.ErrInvalidName):
			return usagef("%w", err)
		case errors.Is(err, kvstore.ErrInvalidRegistration):
			a.log.Warn("a registration cannot be read", "error", err)
			continue
		case err != nil:
			return err
		}
		change := note(standing, r)
		complete = complete || r.Node == ""
		switch {
		case c.prometheus != "" && complete && (change || r.Node == ""):
			err = a.writeTargets(ctx, c.prometheus, slices.Collect(maps.Values(standing)))
		case c.prometheus == "" && r.Node != "" && change:
			err = a.printRegistration(r, c.format)
		}
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader left, it has what it wanted
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// note takes over what became of a registration, and says whether that is more
// than that it was told again.
func note(standing map[string]kvstore.Registered, r kvstore.Registered) bool {
	key := registrationWords(r)
	old, known := standing[key]
	if r.Gone {
		delete(standing, key)
		return known
	}
	if r.Node == "" {
		return false
	}
	standing[key] = r

	return !known || old.Priority != r.Priority || !maps.Equal(old.Annotations, r.Annotations)
}

func (a *app) printRegistration(r kvstore.Registered, f format) error {
	switch {
	case f.json:
		return a.printJSONLine(r)
	case f.yaml:
		_, err := fmt.Fprintln(a.stdout, "---")
		return errors.Join(err, a.printDocument(r, true))
	}
	word := "+"
	if r.Gone {
		word = "-"
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s priority %d\n", word, registrationWords(r), r.Priority)

	return err
}

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
		labels := map[string]string{"cluster": r.Cluster, "service": r.Service, "protocol": r.ProtocolName, "node": r.Node, "__meta_muster_priority": strconv.Itoa(r.Priority)}
		for k, v := range r.Annotations {
			labels["__meta_muster_annotation_"+labelName(k)] = v
		}
		out = append(out, fileTargets{Targets: []string{net.JoinHostPort(r.Address, strconv.Itoa(r.Port))}, Labels: labels})
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

	return nil
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
