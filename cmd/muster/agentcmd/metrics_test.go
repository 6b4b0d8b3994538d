package agentcmd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	common "github.com/prometheus/common/model"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/kvtest"
)

// scrape reads metrics at a socket as Prometheus does: the series by the names that
// queries know, each with its labels. The values are under "".
func scrape(t *testing.T, socket string) map[string][]map[string]string {
	t.Helper()
	client := http.Client{Timeout: kvtest.Deadline, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	response, err := client.Get("http://muster/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(common.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	out := map[string][]map[string]string{}
	for name, family := range families {
		for _, m := range family.Metric {
			series := map[string]string{"": fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())}
			for _, l := range m.Label {
				series[l.GetName()] = l.GetValue()
			}
			if family.GetType() != dto.MetricType_HISTOGRAM {
				out[name] = append(out[name], series)
				continue
			}
			for _, part := range []string{"_sum", "_count", "_bucket"} {
				out[name+part] = append(out[name+part], series)
			}
			series["le"] = "+Inf"
		}
	}

	return out
}

// value returns the value of the first series with some labels, empty for none.
func value(all map[string][]map[string]string, name string, labels ...string) string {
	for _, series := range all[name] {
		found := true
		for i := 0; i < len(labels); i += 2 {
			found = found && series[labels[i]] == labels[i+1]
		}
		if found {
			return series[""]
		}
	}

	return ""
}

// TestMetricsOfAnAgent checks the metrics of a real agent: manifests that succeed, fail, are rejected and are
// removed, a request, and an outage of NATS. A run does not delay a scrape. The dashboard and the alerts use
// existing metrics.
func TestMetricsOfAnAgent(t *testing.T) {
	t.Parallel()
	srv, admin := kvtest.New(t)
	dir := t.TempDir()
	socket := filepath.Join(dir, "metrics.sock")
	c := config.Default("web01")
	c.StateDir, c.FactsDir, c.NATS.Servers = filepath.Join(dir, "state"), filepath.Join(dir, "facts"), []string{srv.URL()}
	c.Metrics.Listen = "unix:" + socket
	n, err := agentcmd.NewNode(t.Context(), c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx, ctx) }()
	serves := func(want, name string, labels ...string) map[string][]map[string]string {
		t.Helper()
		var all map[string][]map[string]string
		kvtest.Eventually(t, fmt.Sprint(name, labels, " is ", want), func() (bool, string) {
			all = scrape(t, socket)
			return value(all, name, labels...) == want, fmt.Sprint(all[name])
		})
		return all
	}
	put := func(key, resource string) {
		t.Helper()
		if _, err := admin.Put(t.Context(), key, []byte("muster:\n  resources:\n    - "+resource+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	serves("1", "muster_nats_connected")
	put("node.web01.good", "exec: [good: {command: 'true'}]")
	put("node.web01.bad", "exec: [bad: {command: 'true', health_checks: [{name: bad, command: 'sh -c \"exit 2\"'}]}]")
	put("group.all.garbage", "fiel: []")
	serves("1", "muster_last_run_success", "manifest", "node.web01.good")
	serves("0", "muster_last_run_success", "manifest", "node.web01.bad")
	serves("1", "muster_health_checks", "status", "critical")
	serves("1", "muster_assignments", "state", "rejected")
	request, err := json.Marshal(model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, ID: "r1", Type: "exec", Properties: json.RawMessage(`{"name": "r", "command": "true"}`)})
	if err == nil {
		err = admin.PutCommand(t.Context(), "node.web01", "r1", request, time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	serves("1", "muster_requests_total", "outcome", "done")

	// This run continues until the file exists.
	began, end := filepath.Join(dir, "began"), filepath.Join(dir, "end")
	put("node.web01.long", fmt.Sprintf("exec: [long: {provider: shell, command: 'touch %s; until test -e %s; do sleep 0.1; done'}]", began, end))
	kvtest.Eventually(t, "the long run began", func() (bool, string) {
		_, err := os.Stat(began)
		return err == nil, fmt.Sprint(err)
	})
	all := scrape(t, socket)
	if value(all, "muster_last_run_success", "manifest", "node.web01.good") != "1" || value(all, "muster_last_run_success", "manifest", "node.web01.long") != "" {
		t.Errorf("while a run goes on: %v", all["muster_last_run_success"])
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all = serves("1", "muster_runs_total", "manifest", "node.web01.long", "outcome", "changed", "cause", "manifest")
	all["muster_fleet_blind"] = []map[string]string{{}} // of muster fleet serve
	shipped().Check(t, all)

	if _, err := admin.Delete(t.Context(), "node.web01.long", nil); err != nil {
		t.Fatal(err)
	}
	serves("2", "muster_assignments", "state", "active")
	srv.Stop()
	all = serves("0", "muster_nats_connected")
	if value(all, "muster_nats_last_connected_timestamp_seconds") == "0" || value(all, "muster_runs_total", "manifest", "node.web01.long") != "" {
		t.Errorf("after an outage: %v %v", all["muster_nats_last_connected_timestamp_seconds"], all["muster_runs_total"])
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("a stopped agent leaves its socket")
	}
}
