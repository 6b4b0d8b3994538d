package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model/registration"
)

// patience is how long reading registrations may take.
const patience = 10 * time.Second

// Registrations are what nodes registered.
type Registrations interface {
	Registrations(ctx context.Context) ([]registration.Registration, error)
}

// Discovery returns what answers Prometheus' HTTP service discovery (http_sd_configs) with the
// services that nodes register, all or those of ?cluster=, ?service= and ?protocol=. Where they
// cannot be read it is an error: Prometheus goes on with those that it has.
func Discovery(source Registrations, log *slog.Logger) http.Handler {
	filters := []string{"cluster", "service", "protocol"}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
		all, err := source.Registrations(ctx)
		if err != nil {
			log.WarnContext(ctx, "registrations cannot be read for Prometheus", "error", err)
			http.Error(w, "the registrations cannot be read: "+err.Error(), http.StatusBadGateway)
			return
		}
		filter := registration.Filter{Cluster: q.Get("cluster"), Service: q.Get("service"), Protocol: q.Get("protocol")}
		text, err := json.Marshal(registration.Targets(filter.Of(all)))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text)
	})
}
