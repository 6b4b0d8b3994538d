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

// Sources are what figures are read from. All are called from several goroutines, and
// must not wait for a run.
type Sources struct {
	State func() model.NodeState
	// Connection returns whether NATS can be reached, and when that was so last: now, when
	// the connection was lost, or zero for never.
	Connection func() (connected bool, last time.Time)
	Outbox     func() reporting.Stats
	Requests   func() requests.Ended
	Log        *slog.Logger
}

// Metrics are the figures of an agent. Make them with New.
type Metrics struct {
	sources  Sources
	families telemetry.Families[snapshot]
	runs     *prometheus.CounterVec
	duration prometheus.Histogram

	// mu keeps names those of the state that was read last.
	mu    sync.Mutex
	names telemetry.LabelValues
}

// NewMetrics returns the metrics of an agent that has begun.
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

// state returns the state of the node: what is assigned has a name after it, and the
// series of what is not any more have ended.
func (m *Metrics) state() model.NodeState {
	s := m.sources.State()
	for _, gone := range telemetry.RetainLabels(m.names, s.Manifests) {
		m.runs.DeletePartialMatch(prometheus.Labels{"manifest": gone})
	}

	return s
}
