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

// patience is the timeout for reading registrations.
const patience = 10 * time.Second

// Registrations reads registered services. Callers do not change the result. The same slice means the same answer.
type Registrations interface {
	Registrations(ctx context.Context) ([]registration.Registration, error)
}

// Discovery returns a handler for Prometheus' HTTP service discovery (http_sd_configs) with the registered services,
// selected by ?cluster=, ?service= and ?protocol=. It answers with an error if they cannot be read, and Prometheus
// keeps its current targets.
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
			// A misspelled parameter would select every service.
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

// discovery shares the texts between clients.
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

// maxQuery is the maximum length of the query in bytes. Names are not longer.
const maxQuery = 4 << 10

// maxShared is the maximum number of logged label conflicts, because nodes write annotations.
const maxShared = 100

// sharedLabels logs once which annotations become the same label.
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

// maxAnswers is the maximum number of cached answers per reading.
const maxAnswers = 64

// answers caches the texts of the last reading, by filter, because they may be long and many clients get the same one.
type answers struct {
	mu sync.Mutex
	// of is the reading. The reference keeps its memory from being reused.
	of    []registration.Registration
	texts map[registration.Filter][]byte
}

// text returns the targets of a filter as JSON; it calls warn with targets that are not cached yet.
func (a *answers) text(all []registration.Registration, filter registration.Filter, warn func([]registration.Registration)) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.texts == nil || !isSame(a.of, all) {
		a.of, a.texts = all, map[registration.Filter][]byte{}
	}
	if text, known := a.texts[filter]; known {
		return text, nil
	}
	selected := filter.Of(all)
	warn(selected)
	text, err := json.Marshal(registration.Targets(selected))
	if err == nil {
		if len(a.texts) >= maxAnswers {
			clear(a.texts)
		}
		a.texts[filter] = text
	}

	return text, err
}

// isSame reports whether both slices are the same reading.
func isSame(a, b []registration.Registration) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
