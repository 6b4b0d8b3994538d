package status_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/markdown"
)

// started is when the agent of the tests began, and at what its runs ended.
var started = time.Unix(1_800_000_000, 0)

// agent is the state that metrics are read from.
type agent struct {
	state     model.NodeState
	connected bool
	last      time.Time
	outbox    reporting.Stats
	requests  map[string]uint64
	log       hosttest.LogText
}

func newAgent() *agent {
	return &agent{state: model.NodeState{Node: "web01", Version: "1.2.3", Started: started, Manifests: map[string]model.ManifestState{}}}
}

func (a *agent) metrics() *status.Metrics {
	return status.NewMetrics(status.Sources{
		State: func() model.NodeState {
			s := a.state
			s.Manifests = maps.Clone(s.Manifests)
			return s
		},
		Connection: func() (bool, time.Time) { return a.connected, a.last },
		Outbox:     func() reporting.Stats { return a.outbox },
		Requests:   func() map[string]uint64 { return a.requests },
		Log:        slog.New(slog.NewTextHandler(&a.log, nil)),
	})
}

// ran notes the run of a manifest, as the agent does.
func (a *agent) ran(m *status.Metrics, key string, run model.Run) {
	run.Manifest = key
	a.state.Manifests[key] = model.ManifestState{Revision: 1, Outcome: run.Outcome(), At: run.Started.Add(run.Duration), Counts: run.Counts}
	m.Ran(key, &run)
}

// gather returns the families of a scrape that is checked for all that a registry can.
func gather(t *testing.T, m *status.Metrics) []*dto.MetricFamily {
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
func scrape(t *testing.T, m *status.Metrics) []string {
	t.Helper()
	var text strings.Builder
	for _, f := range gather(t, m) {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}

	return strings.Split(text.String(), "\n")
}

// series returns the lines that begin with a prefix, without it.
func series(lines []string, prefix string) []string {
	var out []string
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			out = append(out, rest)
		}
	}

	return out
}

func has(t *testing.T, lines []string, prefix string, want ...string) {
	t.Helper()
	if got := series(lines, prefix); !slices.Equal(got, want) {
		t.Errorf("%s:\n  %s\nwant\n  %s", prefix, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// busy is an agent with something of everything.
func busy() (*agent, *status.Metrics) {
	a := newAgent()
	a.connected, a.last = true, started.Add(90*time.Second)
	a.outbox = reporting.Stats{Reports: 3, Bytes: 4096, MaxBytes: 1 << 20, Dropped: 7}
	a.requests = map[string]uint64{"done": 4, "failed": 3, "expired": 2, "cancelled": 5, "rejected": 1}
	a.state.Health = model.HealthCounts{OK: 5, Critical: 1}
	m := a.metrics()
	a.ran(m, "node.web01.motd", model.Run{Cause: model.CauseManifest, Started: started, Duration: 2 * time.Second, Counts: model.Counts{
		Total: 10, Stable: 2, Changed: 4, Noop: 1, Failed: 1, Skipped: 2, Unmet: 1, NotRun: 1, Refreshed: 3,
	}})
	a.ran(m, "group.web.app", model.Run{Cause: model.CauseSchedule, Started: started, Duration: time.Millisecond, Counts: model.Counts{Total: 1, Stable: 1}})
	a.ran(m, "group.web.app", model.Run{Cause: model.CauseSchedule, Started: started, Duration: time.Millisecond, Counts: model.Counts{Total: 1, Stable: 1}})
	a.state.Manifests["group.web.late"] = model.ManifestState{Revision: 1, Seen: 2, Late: model.LateRejected + "no such type; revision 1 stays active"}
	a.state.Manifests["group.web.waits"] = model.ManifestState{Seen: 2, Late: "its bundle is not there"}

	return a, m
}

func TestMetricsAreTheStateOfTheAgent(t *testing.T) {
	_, m := busy()
	all := scrape(t, m)
	has(t, all, "muster_build_info", `{node="web01",version="1.2.3"} 1`)
	has(t, all, "muster_start_time_seconds", ` 1.8e+09`)
	has(t, all, "muster_nats_connected", ` 1`)
	has(t, all, "muster_nats_last_connected_timestamp_seconds", ` 1.80000009e+09`)
	has(t, all, "muster_assignments", `{state="active"} 2`, `{state="inactive"} 1`, `{state="rejected"} 1`)
	has(t, all, "muster_runs_total", `{cause="manifest",manifest="node.web01.motd",outcome="failed"} 1`, `{cause="schedule",manifest="group.web.app",outcome="stable"} 2`)
	has(t, all, "muster_run_duration_seconds_bucket", `{le="0.01"} 2`, `{le="0.1"} 2`, `{le="1"} 2`, `{le="10"} 3`, `{le="60"} 3`, `{le="600"} 3`, `{le="+Inf"} 3`)
	has(t, all, "muster_last_run_timestamp_seconds", `{manifest="group.web.app"} 1.800000000001e+09`, `{manifest="node.web01.motd"} 1.800000002e+09`)
	has(t, all, "muster_last_run_success", `{manifest="group.web.app"} 1`, `{manifest="node.web01.motd"} 0`)
	has(t, all, `muster_resources{manifest="node.web01.motd",`, `state="changed"} 3`, `state="failed"} 1`, `state="noop"} 1`, `state="notrun"} 1`, `state="skipped"} 1`, `state="stable"} 2`, `state="unmet"} 1`)
	has(t, all, "muster_health_checks", `{status="critical"} 1`, `{status="ok"} 5`, `{status="unknown"} 0`, `{status="warning"} 0`)
	has(t, all, "muster_outbox", "_bytes 4096", "_max_bytes 1.048576e+06", "_reports 3")
	has(t, all, "muster_reports_dropped_total", " 7")
	has(t, all, "muster_requests_total", `{outcome="cancelled"} 5`, `{outcome="done"} 4`, `{outcome="expired"} 2`, `{outcome="failed"} 3`, `{outcome="rejected"} 1`)
}

func TestMetricsOfAnAgentThatBegan(t *testing.T) {
	m := newAgent().metrics()
	all := scrape(t, m)
	has(t, all, "muster_nats_connected", ` 0`)
	has(t, all, "muster_nats_last_connected_timestamp_seconds", ` 0`)
	has(t, all, "muster_reports_dropped_total", " 0")
	has(t, all, "muster_runs_total")
	has(t, all, "muster_run_duration_seconds_count", " 0")
	has(t, all, "muster_resources")
}

// TestMetricsOfWhatALimitPutsOff: the manifest has no outcome yet, and its series continue.
func TestMetricsOfWhatALimitPutsOff(t *testing.T) {
	a := newAgent()
	m := a.metrics()
	a.state.Manifests["group.web.slow"] = model.ManifestState{Revision: 1, At: started, Counts: model.Counts{Changed: 2, NotRun: 3}}
	all := scrape(t, m)
	has(t, all, "muster_last_run_success", `{manifest="group.web.slow"} 1`)
	has(t, all, `muster_resources{manifest="group.web.slow",state="notrun"}`, " 3")
}

// TestSeriesEndWithTheirManifest, also without a scrape in between.
func TestSeriesEndWithTheirManifest(t *testing.T) {
	a := newAgent()
	m := a.metrics()
	stable := model.Run{Cause: model.CauseManifest, Counts: model.Counts{Total: 1, Stable: 1}}
	for i := range 3000 {
		key := fmt.Sprintf("group.web.m%d", i)
		a.ran(m, key, stable)
		delete(a.state.Manifests, key)
	}
	a.ran(m, "group.web.last", stable)
	has(t, scrape(t, m), "muster_runs_total", `{cause="manifest",manifest="group.web.last",outcome="stable"} 1`)
	has(t, scrape(t, m), "muster_run_duration_seconds_count", " 3001")
	delete(a.state.Manifests, "group.web.last")
	has(t, scrape(t, m), "muster_runs_total")
	has(t, scrape(t, m), "muster_last_run_success")
}

// TestManyManifestsShareSeries: an operator of one group may assign as many as it likes,
// with names as long as it likes.
func TestManyManifestsShareSeries(t *testing.T) {
	a := newAgent()
	m := a.metrics()
	a.ran(m, "node.web01.first", model.Run{Started: started, Cause: model.CauseManifest, Counts: model.Counts{Total: 1, Stable: 1}})
	long := "group.web." + strings.Repeat("x", 4000)
	a.ran(m, long, model.Run{Started: started.Add(time.Hour), Cause: model.CauseManifest, Counts: model.Counts{Total: 1, Stable: 1}})
	for i := range 600 {
		a.ran(m, fmt.Sprintf("group.web.m%03d", i), model.Run{Started: started.Add(time.Duration(i) * time.Second), Cause: model.CauseManifest, Counts: model.Counts{Total: 2, Stable: 1, Failed: i / 599}})
	}
	all := scrape(t, m)
	if own := series(all, "muster_"); len(own) > 500*(1+1+1+7)+100 || strings.Contains(strings.Join(own, ""), "xxxx") {
		t.Errorf("%d series, some of a very long name: %.200q", len(own), own)
	}
	has(t, all, `muster_last_run_success{manifest="node.web01.first"}`, " 1")
	// 500 have names; the first is not one of the 600.
	has(t, all, `muster_resources{manifest="other",state="stable"}`, " 102")
	has(t, all, `muster_resources{manifest="other",state="failed"}`, " 1")
	has(t, all, `muster_runs_total{cause="manifest",manifest="other",outcome="stable"}`, " 101")
	has(t, all, `muster_last_run_success{manifest="other"}`, " 0")
	has(t, all, `muster_last_run_timestamp_seconds{manifest="other"}`, " 1.800000499e+09")
	// Freed places are used, and manifests with a name keep it.
	delete(a.state.Manifests, "group.web.m000")
	all = scrape(t, m)
	has(t, all, `muster_resources{manifest="other",state="stable"}`, " 101")
	has(t, all, `muster_last_run_success{manifest="group.web.m499"}`, " 1")
	has(t, all, `muster_last_run_success{manifest="group.web.m000"}`)
}

// TestAPanicEndsOneScrape, not the agent.
func TestAPanicEndsOneScrape(t *testing.T) {
	a, broken := newAgent(), true
	m := status.NewMetrics(status.Sources{
		State: func() model.NodeState {
			if broken {
				panic("unforeseen")
			}
			return a.state
		},
		Connection: func() (bool, time.Time) { return false, time.Time{} },
		Outbox:     func() reporting.Stats { return reporting.Stats{} },
		Requests:   func() map[string]uint64 { return nil },
		Log:        slog.New(slog.NewTextHandler(&a.log, nil)),
	})
	if got := gather(t, m); len(got) != 0 || !strings.Contains(a.log.String(), "unforeseen") {
		t.Errorf("served %v, logged %s", got, a.log.String())
	}
	broken = false
	has(t, scrape(t, m), "muster_nats_connected", " 0")
}

// TestThePageHasEveryMetric: docs/metrics.md lists the served metrics.
func TestThePageHasEveryMetric(t *testing.T) {
	_, m := busy()
	var want []string
	for _, f := range gather(t, m) {
		labels := ""
		for i, l := range f.Metric[0].Label {
			if i > 0 {
				labels += ", "
			}
			labels += "`" + l.GetName() + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", f.GetName(), strings.ToLower(f.GetType().String()), labels, strings.TrimSuffix(f.GetHelp(), ".")))
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(markdown.Section(string(page), "## What is served")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| `muster_") {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nand what is served is\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
