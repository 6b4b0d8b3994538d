// Package metrics serves the fleet to Prometheus: figures that it reads from the read model at each scrape, and
// registered services as targets.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/model/telemetry"
)

// maxScrapes is the maximum number of concurrent scrapes; more get 503.
const maxScrapes = 2

// Sources provide the figures. They are called from several goroutines.
type Sources struct {
	Overview func() view.Overview
	Totals   func() view.Totals
	// Webhooks returns the figures of webhooks by name.
	Webhooks func() map[string]webhook.Counts
	// Version is the version of the serving muster.
	Version string
	Log     *slog.Logger
}

// Metrics is a prometheus.Collector for a fleet. Create it with New.
type Metrics struct {
	sources  Sources
	families telemetry.Families[snapshot]

	// mu guards names, the manifests of the last scrape.
	mu    sync.Mutex
	names telemetry.LabelValues
}

// New returns the metrics of a fleet.
func New(s Sources) *Metrics {
	return &Metrics{sources: s, families: families, names: telemetry.LabelValues{}}
}

// Handler returns the handler of scrapes.
func (m *Metrics) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	errors := slog.NewLogLogger(m.sources.Log.Handler(), slog.LevelDebug)

	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: errors, MaxRequestsInFlight: maxScrapes})
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.families.Describe(out)
}

// Collect implements prometheus.Collector. A panic is logged and ends only this scrape.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	defer func() {
		if why := recover(); why != nil {
			m.sources.Log.Error("reading metrics panicked", "panic", why, "stack", string(debug.Stack()))
		}
	}()
	m.families.Collect(m.read(), out)
}

func (m *Metrics) read() *snapshot {
	s := &snapshot{version: m.sources.Version, Overview: m.sources.Overview(), totals: m.sources.Totals(), webhooks: m.sources.Webhooks(), manifests: map[string]view.Manifest{}}
	byName := map[string]view.Manifest{}
	for _, manifest := range s.Manifests {
		byName[manifest.Name] = manifest
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	telemetry.RetainLabels(m.names, byName)
	for _, one := range s.Manifests {
		s.add(m.names.Of(one.Name), one)
	}

	return s
}
