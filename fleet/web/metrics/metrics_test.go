package metrics_test

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/musterfleet/muster/fleet"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/metrics"
	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/monitoring"
)

// at is when the oldest pending revision was assigned.
var at = time.Unix(1_800_000_000, 0)

// busy is a fleet with something of everything.
func busy() view.Overview {
	return view.Overview{
		Progress: view.Progress{Nodes: true, Problems: []string{"the history is read"}}, Webhooks: []view.WebhookProblem{{Webhook: "mute", Problem: "its reports cannot be read", Failing: true}, {Webhook: "late", Problem: "it is behind"}},
		Summary: view.Summary{
			Total:  6,
			States: []view.State{{State: fleet.StatusFailed, Members: view.Members{Nodes: 2}}, {State: fleet.StatusPaused, Otherwise: map[fleet.Status]int{fleet.StatusFailed: 1, fleet.StatusPending: 2}, Members: view.Members{Nodes: 3}}, {State: fleet.StatusOK, Members: view.Members{Nodes: 4}}},
			Manifests: []view.Manifest{
				{Name: "motd", Tally: fleet.Tally{Targets: 6, UpToDate: 1, Failed: 2, Rejected: 3, Unreachable: 4, Unreadable: 5, Pending: 6}, Noop: 1, Oldest: &view.Pending{Since: at}},
				{Name: "app", Tally: fleet.Tally{UpToDate: 2, Pending: 1}, Oldest: &view.Pending{Since: at, Paused: true}},
			},
			Flapping: []view.Flapping{{Members: view.Members{Nodes: 3}}, {Members: view.Members{Nodes: 1}}},
			Clocks:   make([]view.Clock, 2),
			Outboxes: []view.Outbox{{Node: "liar", Reports: math.MaxInt}, {Node: "web01", Reports: 40}, {Node: "web02", Reports: 2}},
			Versions: []view.Version{{Version: "1.2.3", Members: view.Members{Nodes: 5}}, {Version: "other", Members: view.Members{Nodes: 1}}},
		},
	}
}

func totals() view.Totals {
	return view.Totals{
		Reports: []view.ReportCount{
			{Kind: model.KindRun, Outcome: model.OutcomeFailed, Count: 7}, {Kind: model.KindNode, Outcome: "started", Count: 1},
			{Kind: "garbage", Outcome: "a", Count: 2}, {Kind: "more", Outcome: "b", Count: 3},
		},
		Unreadable: 4, Repaired: 5, Behind: 6, Newest: at.Add(time.Second),
	}
}

func sent() map[string]webhook.Counts {
	return map[string]webhook.Counts{"pager": {Sent: 7, Refused: 1, OverShare: 9, Failing: true}}
}

func metricsOf(overview func() view.Overview, log *hosttest.LogText) *metrics.Metrics {
	return metrics.New(metrics.Sources{Overview: overview, Totals: totals, Webhooks: sent, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(log, nil))})
}

// gather returns the families of a scrape that is checked for all that a registry can.
func gather(t *testing.T, m *metrics.Metrics) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	return families
}

// scrape returns the lines of a scrape.
func scrape(t *testing.T, m *metrics.Metrics) []string {
	t.Helper()
	var text strings.Builder
	for _, f := range gather(t, m) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}

	return strings.Split(text.String(), "\n")
}

// has checks the lines that begin with a prefix, without it.
func has(t *testing.T, lines []string, prefix string, want ...string) {
	t.Helper()
	var got []string
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			got = append(got, rest)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", prefix, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestMetricsAreTheFleet(t *testing.T) {
	t.Parallel()
	all := scrape(t, metricsOf(busy, &hosttest.LogText{}))
	has(t, all, "muster_fleet_build_info", `{version="1.2.3"} 1`)
	has(t, all, "muster_fleet_nodes", `{state="failed"} 2`, `{state="no-manifest"} 0`, `{state="ok"} 4`, `{state="paused"} 3`, `{state="pending"} 0`, `{state="rejected"} 0`, `{state="stopped"} 0`, `{state="unreachable"} 0`, `{state="unreadable"} 0`)
	has(t, all, "muster_fleet_paused_nodes", `{state="failed"} 1`, `{state="no-manifest"} 0`, `{state="ok"} 0`, `{state="pending"} 2`, `{state="rejected"} 0`)
	has(t, all, `muster_fleet_manifest_nodes{manifest="motd",status=`, `"failed"} 2`, `"pending"} 6`, `"rejected"} 3`, `"unreachable"} 4`, `"unreadable"} 5`, `"up-to-date"} 1`)
	has(t, all, "muster_fleet_manifest_noop_nodes", `{manifest="app"} 0`, `{manifest="motd"} 1`)
	has(t, all, "muster_fleet_manifest_oldest_pending_timestamp_seconds", `{manifest="motd"} 1.8e+09`)
	has(t, all, "muster_fleet_flapping_resources", " 4")
	has(t, all, "muster_fleet_clocks_off", " 2")
	has(t, all, "muster_fleet_outbox_", "nodes 3", "reports 1.000042e+06")
	has(t, all, "muster_fleet_versions", `{version="1.2.3"} 5`, `{version="other"} 1`)
	has(t, all, "muster_fleet_complete", `{part="history"} 0`, `{part="last_runs"} 0`, `{part="nodes"} 1`)
	has(t, all, "muster_fleet_problems", " 1")
	has(t, all, "muster_fleet_reports_total", `{kind="node",outcome="started"} 1`, `{kind="other",outcome="other"} 5`, `{kind="run",outcome="failed"} 7`)
	has(t, all, "muster_fleet_reports_unreadable_total", " 4")
	has(t, all, "muster_fleet_drift_repaired_total", " 5")
	has(t, all, "muster_fleet_feed_behind_messages", " 6")
	has(t, all, "muster_fleet_feed_newest_timestamp_seconds", " 1.800000001e+09")
	has(t, all, "muster_fleet_webhook_reports_total", `{outcome="over_share",webhook="pager"} 9`, `{outcome="refused",webhook="pager"} 1`, `{outcome="sent",webhook="pager"} 7`)
	has(t, all, "muster_fleet_webhook_behind_seconds", `{webhook="pager"} 0`)
	has(t, all, "muster_fleet_webhook_failing", `{webhook="late"} 0`, `{webhook="mute"} 1`, `{webhook="pager"} 1`)
}

// TestBehind: the age of the report that a webhook sends, independent of the server's clock.
func TestBehind(t *testing.T) {
	t.Parallel()
	now := time.Now()
	counts := map[string]webhook.Counts{"late": {Sending: now.Add(-time.Hour)}, "future": {Sending: now.Add(time.Hour)}}
	m := metrics.New(metrics.Sources{Overview: busy, Totals: totals, Webhooks: func() map[string]webhook.Counts { return counts }, Log: slog.New(slog.DiscardHandler)})
	for _, f := range gather(t, m) {
		if f.GetName() != "muster_fleet_webhook_behind_seconds" {
			continue
		}
		for _, one := range f.Metric {
			got := one.Gauge.GetValue()
			if late := one.Label[0].GetValue() == "late"; late && got < 3600 || !late && got != 0 {
				t.Errorf("%v: %v", one.Label, got)
			}
		}
		return
	}
	t.Error("there is no such metric")
}

// TestSeriesAreBounded: an operator may assign as many manifests as the bucket holds, and nodes
// say which version they run.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	o := view.Overview{}
	add := func(name string) {
		o.Manifests = append(o.Manifests, view.Manifest{Name: name, Tally: fleet.Tally{Failed: 1}, Oldest: &view.Pending{Since: at.Add(time.Duration(len(o.Manifests)) * time.Second)}})
	}
	add("zzz")
	m := metricsOf(func() view.Overview { return o }, &hosttest.LogText{})
	scrape(t, m)
	for i := range 700 {
		add(fmt.Sprintf("m%03d", i))
		o.Versions = append(o.Versions, view.Version{Version: fmt.Sprint("v", i), Members: view.Members{Nodes: i + 1}})
	}
	add(strings.Repeat("x", 201))
	all := scrape(t, m)
	if len(all) > 500*9+200 {
		t.Errorf("%d lines", len(all))
	}
	has(t, all, `muster_fleet_manifest_nodes{manifest="zzz",status="failed"}`, " 1")
	has(t, all, `muster_fleet_manifest_nodes{manifest="other",status="failed"}`, " 202")
	has(t, all, `muster_fleet_manifest_oldest_pending_timestamp_seconds{manifest="other"}`, " 1.8000005e+09")
	has(t, all, `muster_fleet_versions{version="v699"}`, " 700")
	has(t, all, `muster_fleet_versions{version="v1"}`)
}

func TestAFleetOfWhichNothingIsKnown(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Sources{
		Overview: func() view.Overview { return view.Overview{} }, Totals: func() view.Totals { return view.Totals{} },
		Webhooks: func() map[string]webhook.Counts { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	all := scrape(t, m)
	has(t, all, `muster_fleet_nodes{state="ok"}`, " 0")
	has(t, all, "muster_fleet_manifest_oldest_pending_timestamp_seconds")
	has(t, all, "muster_fleet_feed_behind_messages", " 0")
}

// TestAPanicEndsOneScrape, not the process.
func TestAPanicEndsOneScrape(t *testing.T) {
	t.Parallel()
	log, broken := &hosttest.LogText{}, true
	m := metricsOf(func() view.Overview {
		if broken {
			panic("unforeseen")
		}
		return busy()
	}, log)
	if got := gather(t, m); len(got) != 0 || !strings.Contains(log.String(), "unforeseen") {
		t.Errorf("served %v, logged %s", got, log.String())
	}
	broken = false
	has(t, scrape(t, m), "muster_fleet_problems", " 1")
}

func TestHandler(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	metricsOf(busy, &hosttest.LogText{}).Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "\nmuster_fleet_problems 1\n") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// shipped lists the files for monitoring a fleet.
func shipped() monitoring.Shipped {
	return monitoring.Shipped{Rules: "../../../deploy/prometheus/muster-fleet.rules.yaml", Dashboard: "../../../deploy/grafana/fleet.json"}
}

// TestWhatIsShippedMatchesWhatIsServed: each query of alerts and dashboard.
func TestWhatIsShippedMatchesWhatIsServed(t *testing.T) {
	t.Parallel()
	shipped().Check(t, monitoring.SeriesOf(gather(t, metricsOf(busy, &hosttest.LogText{}))))
}

// TestThePageHasEveryMetricAndAlert: docs/fleet-api.md has the tables of both.
func TestThePageHasEveryMetricAndAlert(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/fleet-api.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	var want, got []string
	for _, f := range gather(t, metricsOf(busy, &hosttest.LogText{})) {
		var labels []string
		for _, l := range f.Metric[0].Label {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), strings.TrimSuffix(f.GetHelp(), ".")))
	}
	for line := range strings.Lines(markdown.Section(page, "## Metrics")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `muster_") {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nand what is served is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var alerts []string
	for _, a := range shipped().Alerts(t) {
		alerts = append(alerts, a.Alert)
	}
	if got := markdown.Rows(markdown.Section(page, "## Alerts and a dashboard")); !slices.Equal(got, alerts) {
		t.Errorf("the page has %q, the alerts are %q", got, alerts)
	}
}

// TestThePageHasEveryState: docs/fleet-api.md has the values of the label state.
func TestThePageHasEveryState(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/fleet-api.md")
	if err != nil {
		t.Fatal(err)
	}
	row := ""
	for line := range strings.Lines(markdown.Section(string(text), "## Metrics")) {
		if strings.HasPrefix(line, "| `state` |") {
			row = line
		}
	}
	found := 0
	for _, f := range gather(t, metricsOf(busy, &hosttest.LogText{})) {
		if f.GetName() != "muster_fleet_nodes" {
			continue
		}
		for _, m := range f.Metric {
			found++
			if state := m.Label[0].GetValue(); !strings.Contains(row, "`"+state+"`") {
				t.Errorf("%s is missing in %s", state, row)
			}
		}
	}
	if found == 0 {
		t.Error("there are no states")
	}
}
