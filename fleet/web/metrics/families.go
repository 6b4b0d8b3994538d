package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/telemetry"
)

type snapshot struct {
	version string
	view.Overview
	totals   view.Totals
	webhooks map[string]webhook.Counts
	// manifests are the counts of all manifests with a label. Their Oldest is nil if only paused nodes are pending.
	manifests map[string]view.Manifest
}

// add adds the counts of a manifest to the others with its label.
func (s *snapshot) add(label string, one view.Manifest) {
	sum := s.manifests[label]
	sum.AddAll(one.Tally)
	sum.Noop += one.Noop
	if p := one.Oldest; p != nil && !p.Paused && (sum.Oldest == nil || p.Since.Before(sum.Oldest.Since)) {
		sum.Oldest = p
	}
	s.manifests[label] = sum
}

// families lists the metrics, as docs/fleet-api.md does. No label contains names of nodes.
var families = telemetry.Families[snapshot]{
	telemetry.Gauge("muster_fleet_build_info", "Always 1: the version of the muster that serves the fleet.", func(s *snapshot, emit telemetry.Emit) {
		emit(1, s.version)
	}, "version"),
	telemetry.Gauge("muster_fleet_nodes", "Nodes by their state as a whole.", readNodes, "state"),
	telemetry.Gauge("muster_fleet_paused_nodes", "Paused nodes by what their state would be without the pause.", readPaused, "state"),
	telemetry.Gauge("muster_fleet_versions", "Nodes that were read by the version of muster that they run, the 20 most frequent; all further ones are other.", readVersions, "version"),
	telemetry.Gauge("muster_fleet_manifest_nodes", "Nodes with an applicable manifest, by its status.", readManifests, "manifest", "status"),
	telemetry.Gauge("muster_fleet_manifest_noop_nodes", "Nodes that are up to date with a manifest which would change something there, and only reports it.", func(s *snapshot, emit telemetry.Emit) {
		for name, m := range s.manifests {
			emit(float64(m.Noop), name)
		}
	}, "manifest"),
	telemetry.Gauge("muster_fleet_manifest_oldest_pending_timestamp_seconds", "When the revision was assigned that is pending on a node for the longest time, in seconds since 1970; paused nodes do not count; missing while none is pending.", func(s *snapshot, emit telemetry.Emit) {
		for name, m := range s.manifests {
			if m.Oldest != nil && !m.Oldest.Since.IsZero() {
				emit(telemetry.UnixSeconds(m.Oldest.Since), name)
			}
		}
	}, "manifest"),
	telemetry.Gauge("muster_fleet_flapping_resources", "Resources that something else changes again and again, counted on each node.", func(s *snapshot, emit telemetry.Emit) {
		all := 0
		for _, f := range s.Flapping {
			all += f.Nodes
		}
		emit(float64(all))
	}),
	telemetry.Gauge("muster_fleet_clocks_off", "Nodes with a clock offset from the server.", func(s *snapshot, emit telemetry.Emit) {
		emit(float64(len(s.Clocks)))
	}),
	telemetry.Gauge("muster_fleet_outbox_nodes", "Nodes with reports that wait to be published.", func(s *snapshot, emit telemetry.Emit) {
		emit(float64(len(s.Outboxes)))
	}),
	telemetry.Gauge("muster_fleet_outbox_reports", "Reports that wait to be published, on all nodes.", func(s *snapshot, emit telemetry.Emit) {
		all := 0
		for _, o := range s.Outboxes {
			all += min(o.Reports, maxWaiting)
		}
		emit(float64(all))
	}),
	telemetry.Gauge("muster_fleet_complete", "Whether everything is known: nodes and assignments, the last run of each manifest, the history.", func(s *snapshot, emit telemetry.Emit) {
		emit(telemetry.FlagValue(s.Progress.Nodes), "nodes")
		emit(telemetry.FlagValue(s.Progress.LastRuns), "last_runs")
		emit(telemetry.FlagValue(s.Progress.History), "history")
	}, "part"),
	telemetry.Gauge("muster_fleet_blind", "1 while the server receives no data about nodes, such as without NATS; all figures are the last known.", func(s *snapshot, emit telemetry.Emit) {
		emit(telemetry.FlagValue(!s.Progress.BlindSince.IsZero()))
	}),
	telemetry.Gauge("muster_fleet_problems", "Reasons why the figures may not be up to date, such as a lost connection to NATS.", func(s *snapshot, emit telemetry.Emit) {
		emit(float64(len(s.Progress.Problems)))
	}),
	telemetry.Counter("muster_fleet_reports_total", "Reports of nodes that were stored since serve started, by kind and outcome; of the kind node the outcome is the event.", readReports, "kind", "outcome"),
	telemetry.Counter("muster_fleet_reports_unreadable_total", "Messages with reports that could not be read.", func(s *snapshot, emit telemetry.Emit) {
		emit(float64(s.totals.Unreadable))
	}),
	telemetry.Counter("muster_fleet_drift_repaired_total", "Drift that nodes reported as repaired.", func(s *snapshot, emit telemetry.Emit) {
		emit(float64(s.totals.Repaired))
	}),
	telemetry.Gauge("muster_fleet_feed_behind_messages", "Messages of the stream of reports that were not read yet.", func(s *snapshot, emit telemetry.Emit) {
		emit(float64(s.totals.Behind))
	}),
	telemetry.Gauge("muster_fleet_feed_newest_timestamp_seconds", "When the server stored the newest report that was read, in seconds since 1970; 0 for none.", func(s *snapshot, emit telemetry.Emit) {
		emit(telemetry.UnixSeconds(s.totals.Newest))
	}),
	telemetry.Counter("muster_fleet_webhook_reports_total", "Reports that the receiver of a webhook took (sent), and those that were left out since it did not take them (refused) or since their node reports too much (over_share), since serve started.", func(s *snapshot, emit telemetry.Emit) {
		for name, c := range s.webhooks {
			emit(float64(c.Sent), name, "sent")
			emit(float64(c.Refused), name, "refused")
			emit(float64(c.OverShare), name, "over_share")
		}
	}, "webhook", "outcome"),
	telemetry.Gauge("muster_fleet_webhook_behind_seconds", "How long ago the server stored the report that a webhook sends, in seconds; 0 while there is none.", func(s *snapshot, emit telemetry.Emit) {
		for name, c := range s.webhooks {
			behind := 0.0
			if !c.Sending.IsZero() {
				behind = max(time.Since(c.Sending).Seconds(), 0)
			}
			emit(behind, name)
		}
	}, "webhook"),
	telemetry.Gauge("muster_fleet_webhook_failing", "Whether a webhook is not delivered: the newest try failed, or its reports cannot be read.", readFailing, "webhook"),
}

func readFailing(s *snapshot, emit telemetry.Emit) {
	failing := map[string]bool{}
	for name, c := range s.webhooks {
		failing[name] = c.Failing
	}
	for _, p := range s.Webhooks {
		failing[p.Webhook] = failing[p.Webhook] || p.Failing
	}
	for name, is := range failing {
		emit(telemetry.FlagValue(is), name)
	}
}

// readNodes emits all states, so that every series continues at zero.
func readNodes(s *snapshot, emit telemetry.Emit) {
	counts := map[fleet.Status]int{}
	for _, state := range s.States {
		counts[state.State] = state.Nodes
	}
	for _, state := range fleet.NodeStatuses() {
		emit(float64(counts[state]), string(state))
	}
}

// readPaused emits all states that a reachable node may have.
func readPaused(s *snapshot, emit telemetry.Emit) {
	var counts map[fleet.Status]int
	for _, state := range s.States {
		if state.State == fleet.StatusPaused {
			counts = state.Otherwise
		}
	}
	for _, state := range []fleet.Status{fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusNoManifest, fleet.StatusOK} {
		emit(float64(counts[state]), string(state))
	}
}

// maxVersions limits the versions with a series, because nodes choose their versions.
const maxVersions = 20

func readVersions(s *snapshot, emit telemetry.Emit) {
	all := slices.Clone(s.Versions)
	slices.SortStableFunc(all, func(a, b view.Version) int { return cmp.Compare(b.Nodes, a.Nodes) })
	rest := 0
	for i, v := range all {
		if i >= maxVersions || v.Version == telemetry.OtherLabel {
			rest += v.Nodes
			continue
		}
		emit(float64(v.Nodes), v.Version)
	}
	if rest > 0 {
		emit(float64(rest), telemetry.OtherLabel)
	}
}

func readManifests(s *snapshot, emit telemetry.Emit) {
	for name, m := range s.manifests {
		for status, n := range m.Counts() {
			emit(float64(n), name, string(status))
		}
	}
}

// readReports emits only known words, because nodes choose their subjects.
func readReports(s *snapshot, emit telemetry.Emit) {
	counts := map[[2]string]uint64{}
	for _, c := range s.totals.Reports {
		counts[[2]string{word(c.Kind, model.Kinds()), word(string(c.Outcome), model.ReportOutcomes())}] += c.Count
	}
	for of, n := range counts {
		emit(float64(n), of[0], of[1])
	}
}

// maxWaiting limits the waiting reports of one node, because nodes report the number.
const maxWaiting = 1_000_000

func word(text string, known []string) string {
	if slices.Contains(known, text) {
		return text
	}

	return telemetry.OtherLabel
}
