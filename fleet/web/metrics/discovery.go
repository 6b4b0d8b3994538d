package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/model/telemetry"
)

// patience is how long reading registrations may take.
const patience = 10 * time.Second

// Registrations are what nodes registered. Nobody changes what they return: as long as it is the same slice, so is what
// is answered.
type Registrations interface {
	Registrations(ctx context.Context) ([]registration.Registration, error)
}

// Discovery returns what answers Prometheus' HTTP service discovery (http_sd_configs) with the
// services that nodes register, all or those of ?cluster=, ?service= and ?protocol=. Where they
// cannot be read it is an error: Prometheus goes on with those that it has.
func Discovery(source Registrations, log *slog.Logger) http.Handler {
	filters := []string{"cluster", "service", "protocol"}
	d := &discovery{source: source, log: log, shared: &sharedLabels{log: log, known: map[string]bool{}}}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > maxQuery {
			http.Error(w, fmt.Sprintf("the parameters are longer than %d bytes", maxQuery), http.StatusUnprocessableEntity)
			return
		}
		q := r.URL.Query()
		for name := range q {
			// One that is mistyped would have Prometheus read every service.
			if !slices.Contains(filters, name) {
				http.Error(w, fmt.Sprintf("unknown parameter %q, there are: %s", name, strings.Join(filters, ", ")), http.StatusUnprocessableEntity)
				return
			}
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		text, err := d.text(ctx, registration.Filter{Cluster: q.Get("cluster"), Service: q.Get("service"), Protocol: q.Get("protocol")})
		if err != nil {
			d.failed.Log(ctx, log, slog.LevelWarn, "registrations cannot be read for Prometheus", "error", err)
			http.Error(w, "the registrations cannot be read: "+err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text)
	})
}

// discovery answers many with the same text: it may be long.
type discovery struct {
	source  Registrations
	log     *slog.Logger
	shared  *sharedLabels
	answers answers
	failed  telemetry.RateLimitedLog
}

// text returns the targets of a filter as JSON.
func (d *discovery) text(ctx context.Context, filter registration.Filter) ([]byte, error) {
	all, err := d.source.Registrations(ctx)
	if err != nil {
		return nil, err
	}

	return d.answers.text(all, filter, d.shared.warn)
}

// maxQuery is how long what selects services may be, in bytes: names are no longer.
const maxQuery = 4 << 10

// maxShared is how many labels are logged that annotations share: nodes write them.
const maxShared = 100

// sharedLabels logs which annotations become the same label, each once.
type sharedLabels struct {
	log *slog.Logger

	mu    sync.Mutex
	known map[string]bool
}

func (s *sharedLabels) warn(all []registration.Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range all {
		for label, keys := range r.AnnotationsByLabel() {
			id := fmt.Sprint(r.Node, " ", r.Cluster, " ", r.Service, " ", r.Address, " ", r.Port, " ", label)
			if len(keys) < 2 || s.known[id] || len(s.known) >= maxShared {
				continue
			}
			s.known[id] = true
			s.log.Warn("annotations with the same Prometheus label, only the first is written", "label", label, "annotations", strings.Join(keys, ", "), "node", r.Node, "service", r.Service, "address", r.Address, "port", r.Port)
		}
	}
}
