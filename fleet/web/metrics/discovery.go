package metrics

import (
	"context"
	"encoding/json"
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

const patience = 10 * time.Second

// Registrations reads registered services. Callers do not change the result.
type Registrations interface {
	Registrations(ctx context.Context) ([]registration.Registration, error)
}

// Discovery returns a handler for Prometheus' HTTP service discovery (http_sd_configs) with the registered services,
// selected by ?cluster=, ?service= and ?protocol=. It answers with an error if they cannot be read, and Prometheus
// keeps its current targets.
func Discovery(source Registrations, log *slog.Logger) http.Handler {
	filters := []string{"cluster", "service", "protocol"}
	shared := &sharedLabels{log: log, known: map[string]bool{}}
	var failed telemetry.RateLimitedLog

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > maxQuery {
			http.Error(w, fmt.Sprintf("the parameters are longer than %d bytes", maxQuery), http.StatusUnprocessableEntity)
			return
		}
		q := r.URL.Query()
		for name := range q {
			// A misspelled parameter would select every service.
			if !slices.Contains(filters, name) {
				http.Error(w, fmt.Sprintf("unknown parameter %q, there are: %s", name, strings.Join(filters, ", ")), http.StatusUnprocessableEntity)
				return
			}
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		all, err := source.Registrations(ctx)
		if err != nil {
			failed.Log(ctx, log, slog.LevelWarn, "registrations cannot be read for Prometheus", "error", err)
			http.Error(w, "the registrations cannot be read: "+err.Error(), http.StatusBadGateway)
			return
		}
		selected := registration.Filter{Cluster: q.Get("cluster"), Service: q.Get("service"), Protocol: q.Get("protocol")}.Of(all)
		shared.warn(selected)
		text, err := json.Marshal(registration.Targets(selected))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text)
	})
}

// maxQuery is the maximum length of the query in bytes. Names are not longer.
const maxQuery = 4 << 10

// maxShared is the maximum number of logged label conflicts, because nodes write annotations.
const maxShared = 100

// sharedLabels logs annotations with the same label, once.
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
