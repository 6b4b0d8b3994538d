package status

import (
	"time"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

// snapshot is the state of the agent at one scrape.
type snapshot struct {
	state     model.NodeState
	connected bool
	// last is the last time when NATS was connected.
	last      time.Time
	outbox    reporting.Stats
	requests  requests.Ended
	manifests map[string]manifest
}

// families are the metrics, the same as in docs/metrics.md. Labels have few values: words of muster, and
// names of assignments.
func families() telemetry.Families[snapshot] {
	return telemetry.Families[snapshot]{
		telemetry.Gauge("muster_build_info", "Always 1: the node, and the version of muster that it runs.", func(s *snapshot, emit telemetry.Emit) {
			emit(1, s.state.Node, s.state.Version)
		}, "node", "version"),
		telemetry.Gauge("muster_start_time_seconds", "When the agent started, in seconds since 1970.", func(s *snapshot, emit telemetry.Emit) {
			emit(telemetry.UnixSeconds(s.state.Started))
		}),
		telemetry.Gauge("muster_nats_connected", "Whether the agent is connected to NATS.", func(s *snapshot, emit telemetry.Emit) {
			emit(telemetry.FlagValue(s.connected))
		}),
		telemetry.Gauge("muster_nats_last_connected_timestamp_seconds", "When the agent was last connected to NATS, in seconds since 1970: now while it is, 0 before the first time.", func(s *snapshot, emit telemetry.Emit) {
			emit(telemetry.UnixSeconds(s.last))
		}),
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
		telemetry.Gauge("muster_paused", "Whether operators paused the node: it observes, and changes nothing.", func(s *snapshot, emit telemetry.Emit) {
			emit(telemetry.FlagValue(s.state.Paused != nil))
		}),
		telemetry.Gauge("muster_watched_resources", "Resources that are watched for drift.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.state.Watches))
		}),
		telemetry.Gauge("muster_polled_resources", "Resources that are polled for drift, because they cannot be watched.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.state.Polled))
		}),
		telemetry.Gauge("muster_flapping_resources", "Resources that something else changes again and again, the first 20.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(len(s.state.Flapping)))
		}),
		telemetry.Gauge("muster_outbox_reports", "Reports that wait to be published.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.outbox.Reports))
		}),
		telemetry.Gauge("muster_outbox_bytes", "Bytes that the outbox takes.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.outbox.Bytes))
		}),
		telemetry.Gauge("muster_outbox_max_bytes", "Bytes that the outbox may take before reports are dropped (outbox_max_bytes).", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.outbox.MaxBytes))
		}),
		telemetry.Counter("muster_reports_dropped_total", "Reports that were dropped, or found missing, since the agent started.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.outbox.Dropped))
		}),
		telemetry.Counter("muster_requests_total", "Ensure requests that ended since the agent started, by how: done, failed, expired, cancelled, or rejected before they began.", func(s *snapshot, emit telemetry.Emit) {
			emit(float64(s.requests.Done), "done")
			emit(float64(s.requests.Failed), "failed")
			emit(float64(s.requests.Expired), "expired")
			emit(float64(s.requests.Cancelled), "cancelled")
			emit(float64(s.requests.Rejected), "rejected")
		}, "outcome"),
	}
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
