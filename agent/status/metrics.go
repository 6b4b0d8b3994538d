package status

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/tasks"
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
	// Requests returns the numbers of ended requests by outcome.
	Requests func() map[string]uint64
	Log      *slog.Logger
}

// Metrics are the metrics of an agent. Create them with NewMetrics.
type Metrics struct {
	sources  Sources
	families telemetry.Families[snapshot]
	runs     *prometheus.CounterVec
	duration prometheus.Histogram

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

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.runs.Describe(out)
	m.duration.Describe(out)
	m.families.Describe(out)
}

// Collect implements prometheus.Collector. It reads the state of the agent. A panic is logged and ends only
// this scrape.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	_ = tasks.Guard(m.sources.Log, "reading metrics", func() error {
		s := m.read()
		m.runs.Collect(out)
		m.duration.Collect(out)
		m.families.Collect(s, out)
		return nil
	})
}

func (m *Metrics) read() *snapshot {
	s := &snapshot{outbox: m.sources.Outbox(), requests: m.sources.Requests()}
	s.connected, s.last = m.sources.Connection()
	m.mu.Lock()
	defer m.mu.Unlock()
	s.state = m.state()
	s.manifests = manifestsOf(s.state.Manifests, m.names.Of)

	return s
}

type snapshot struct {
	state     model.NodeState
	connected bool
	last      time.Time
	outbox    reporting.Stats
	requests  map[string]uint64
	manifests map[string]manifest
}

// families are the metrics, the same as in docs/metrics.md. Labels have few values: words of muster, and
// names of assignments.
func families() telemetry.Families[snapshot] {
	return telemetry.Families[snapshot]{
		telemetry.Gauge("muster_build_info", "Always 1: the node, and the version of muster that it runs.", func(s *snapshot, emit telemetry.Emit) {
			emit(1, s.state.Node, s.state.Version)
		}, "node", "version"),
		number("muster_start_time_seconds", "When the agent started, in seconds since 1970.", func(s *snapshot) float64 { return telemetry.UnixSeconds(s.state.Started) }),
		number("muster_nats_connected", "Whether the agent is connected to NATS.", func(s *snapshot) float64 { return telemetry.FlagValue(s.connected) }),
		number("muster_nats_last_connected_timestamp_seconds", "When the agent was last connected to NATS, in seconds since 1970: now while it is, 0 before the first time.", func(s *snapshot) float64 { return telemetry.UnixSeconds(s.last) }),
		telemetry.Gauge("muster_assignments", "Keys assigned to the node: their newest revision is active, rejected, or waits or does not apply (inactive).", readAssignments, "state"),
		telemetry.Gauge("muster_last_run_timestamp_seconds", "When the last run of a manifest ended, in seconds since 1970; of several (other) the earliest.", func(s *snapshot, emit telemetry.Emit) {
			for name, m := range s.manifests {
				emit(telemetry.UnixSeconds(m.last), name)
			}
		}, "manifest"),
		telemetry.Gauge("muster_last_run_success", "Whether nothing failed in the last run of a manifest; what noop or a limit leaves undone is no failure; of several (other) the runs of all.", func(s *snapshot, emit telemetry.Emit) {
			for name, m := range s.manifests {
				emit(telemetry.FlagValue(!m.failed), name)
			}
		}, "manifest"),
		telemetry.Gauge("muster_resources", "Resources of a manifest, by what the last run made of them.", readResources, "manifest", "state"),
		telemetry.Gauge("muster_health_checks", "Health checks by their current status.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.state.Health.OK), string(model.HealthOK))
			emit(float64(s.state.Health.Warning), string(model.HealthWarning))
			emit(float64(s.state.Health.Critical), string(model.HealthCritical))
			emit(float64(s.state.Health.Unknown), string(model.HealthUnknown))
		}, "status"),
		number("muster_paused", "Whether operators paused the node: it observes, and changes nothing.", func(s *snapshot) float64 { return telemetry.FlagValue(s.state.Paused != nil) }),
		number("muster_watched_resources", "Resources that are watched for drift.", func(s *snapshot) float64 { return float64(s.state.Watches) }),
		number("muster_polled_resources", "Resources that are polled for drift, because they cannot be watched.", func(s *snapshot) float64 { return float64(s.state.Polled) }),
		number("muster_flapping_resources", "Resources that something else changes again and again, the first 20.", func(s *snapshot) float64 { return float64(len(s.state.Flapping)) }),
		number("muster_outbox_reports", "Reports that wait to be published.", func(s *snapshot) float64 { return float64(s.outbox.Reports) }),
		number("muster_outbox_bytes", "Bytes that the outbox takes.", func(s *snapshot) float64 { return float64(s.outbox.Bytes) }),
		number("muster_outbox_max_bytes", "Bytes that the outbox may take before reports are dropped (outbox_max_bytes).", func(s *snapshot) float64 { return float64(s.outbox.MaxBytes) }),
		telemetry.Counter("muster_reports_dropped_total", "Reports that were dropped, or found missing, since the agent started.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.outbox.Dropped))
		}),
		telemetry.Counter("muster_requests_total", "Ensure requests that ended since the agent started, by how: done, failed, expired, cancelled, or rejected before they began.", func(s *snapshot, emit telemetry.Emit) {
			for _, outcome := range []string{"done", "failed", "expired", "cancelled", "rejected"} {
				emit(float64(s.requests[outcome]), outcome)
			}
		}, "outcome"),
	}
}

func number(name, help string, read func(*snapshot) float64) telemetry.Family[snapshot] {
	return telemetry.Gauge(name, help, func(s *snapshot, emit telemetry.Emit) { emit(read(s)) })
}

func readAssignments(s *snapshot, emit telemetry.Emit) {
	var active, inactive, rejected int
	for _, m := range s.state.Manifests {
		switch {
		case m.Rejected():
			rejected++
		case m.Late != "" || m.Revision == 0:
			inactive++
		default:
			active++
		}
	}
	emit(float64(active), "active")
	emit(float64(inactive), "inactive")
	emit(float64(rejected), "rejected")
}

// readResources gives each resource one state, so that their sum is their number.
func readResources(s *snapshot, emit telemetry.Emit) {
	for name, m := range s.manifests {
		c := m.counts
		emit(float64(c.Stable), name, string(model.OutcomeStable))
		emit(float64(c.Made()), name, string(model.OutcomeChanged))
		emit(float64(c.Noop), name, string(model.OutcomeNoop))
		emit(float64(c.Failed), name, string(model.OutcomeFailed))
		emit(float64(c.Unmet), name, string(model.OutcomeUnmet))
		emit(float64(c.Skipped-c.Unmet), name, string(model.OutcomeSkipped))
		emit(float64(c.NotRun), name, string(model.OutcomeNotRun))
	}
}

type manifest struct {
	counts model.Counts
	last   time.Time
	failed bool
}

// manifestsOf returns the manifests that ran by name. A manifest with changes deferred by a limit has no
// outcome yet.
func manifestsOf(states map[string]model.ManifestState, name func(key string) string) map[string]manifest {
	out := map[string]manifest{}
	for key, s := range states {
		if s.Outcome == "" && s.At.IsZero() {
			continue
		}
		m, more := out[name(key)]
		if !more || s.At.Before(m.last) {
			m.last = s.At
		}
		m.failed = m.failed || s.Outcome.IsFailure()
		m.counts = sumMetrics(m.counts, s.Counts)
		out[name(key)] = m
	}

	return out
}

func sumMetrics(a, b model.Counts) model.Counts {
	return model.Counts{
		Changed: a.Changed + b.Changed, Noop: a.Noop + b.Noop, Failed: a.Failed + b.Failed, Skipped: a.Skipped + b.Skipped,
		Unmet: a.Unmet + b.Unmet, Stable: a.Stable + b.Stable, NotRun: a.NotRun + b.NotRun,
	}
}
