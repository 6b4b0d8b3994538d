package status

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// Sources provide the values of metrics. Any goroutine may call them. They must not wait for a run.
type Sources struct {
	State func() model.NodeState
	// Connection reports whether NATS is reachable, and the last time when it was: now, the time of the
	// disconnect, or zero for never.
	Connection func() (connected bool, last time.Time)
	Outbox     func() reporting.Stats
	Requests   func() requests.Ended
	Log        *slog.Logger
}

// Metrics are the metrics of an agent. Create them with NewMetrics.
type Metrics struct {
	sources  Sources
	families telemetry.Families[snapshot]
	runs     *prometheus.CounterVec
	duration prometheus.Histogram

	// mu guards names, the names of the last read state.
	mu    sync.Mutex
	names telemetry.LabelValues
}

// NewMetrics returns the metrics of a started agent.
func NewMetrics(s Sources) *Metrics {
	return &Metrics{
		sources: s, families: families(), names: telemetry.LabelValues{},
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_runs_total", Help: "Runs of manifests that ended since the agent started. Requests are not among them.",
		}, []string{"manifest", "outcome", "cause"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "muster_run_duration_seconds", Help: "How long the runs of all manifests took.",
			Buckets: []float64{0.01, 0.1, 1, 10, 60, 600},
		}),
	}
}

// Ran counts a run of a manifest that ended.
func (m *Metrics) Ran(key string, run *model.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state()
	m.runs.WithLabelValues(m.names.Of(key), string(run.Outcome()), string(run.Cause)).Inc()
	m.duration.Observe(run.Duration.Seconds())
}

// state returns the state of the node. It adds names for new assignments and ends the series of removed ones.
func (m *Metrics) state() model.NodeState {
	s := m.sources.State()
	for _, gone := range telemetry.RetainLabels(m.names, s.Manifests) {
		m.runs.DeletePartialMatch(prometheus.Labels{"manifest": gone})
	}

	return s
}
