package status

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterfleet/muster/agent/tasks"
)

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

// read reads the state of the agent.
func (m *Metrics) read() *snapshot {
	s := &snapshot{outbox: m.sources.Outbox(), requests: m.sources.Requests()}
	s.connected, s.last = m.sources.Connection()
	m.mu.Lock()
	defer m.mu.Unlock()
	s.state = m.state()
	s.manifests = manifestsOf(s.state.Manifests, m.names.Of)

	return s
}
