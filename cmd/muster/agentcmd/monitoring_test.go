package agentcmd_test

import (
	"os"
	"slices"
	"testing"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/monitoring"
)

// shipped lists the shipped files for monitoring agents.
func shipped() monitoring.Shipped {
	return monitoring.Shipped{Rules: "../../../deploy/prometheus/muster.rules.yaml", Dashboard: "../../../deploy/grafana/muster.json"}
}

// TestPageOfMetrics: its configuration is valid, and it has the alerts there are.
func TestPageOfMetrics(t *testing.T) {
	text, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	example := markdown.Blocks(string(text))[0]
	if c, err := config.Parse("agent.yaml", []byte(example.Text), config.Default("web01")); err != nil || c.Metrics.Listen == "" {
		t.Errorf("line %d: %q, %v", example.Line, c.Metrics.Listen, err)
	}
	var want []string
	for _, a := range shipped().Alerts(t) {
		want = append(want, a.Alert)
	}
	if got := markdown.Rows(markdown.Section(string(text), "## Prometheus")); !slices.Equal(got, want) {
		t.Errorf("the page has %q, the alerts are %q", got, want)
	}
}
