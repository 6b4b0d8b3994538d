// Package metric has metrics that are read from the state of something when they are asked for, so
// that nothing is counted between scrapes.
package metric

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is one metric that is read from a state S. Make it with Gauge or Counter.
type Family[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(s *S, emit Emit)
}

// Emit adds the value of the series with these values of its labels.
type Emit func(value float64, labels ...string)

// Gauge returns a metric that rises and falls.
func Gauge[S any](name, help string, read func(*S, Emit), labels ...string) Family[S] {
	return Family[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

// Counter returns a metric that only rises, while the process lives.
func Counter[S any](name, help string, read func(*S, Emit), labels ...string) Family[S] {
	return Family[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

// Families are the metrics of one state.
type Families[S any] []Family[S]

// Describe is that of prometheus.Collector.
func (all Families[S]) Describe(out chan<- *prometheus.Desc) {
	for _, f := range all {
		out <- f.desc
	}
}

// Collect sends the series as they are in a state.
func (all Families[S]) Collect(s *S, out chan<- prometheus.Metric) {
	for _, f := range all {
		f.read(s, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
		})
	}
}

// Flag returns a yes or no as Prometheus has it.
func Flag(on bool) float64 {
	if on {
		return 1
	}

	return 0
}

// Seconds returns a time as Prometheus has it, in seconds since 1970, zero for none.
func Seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}

	return float64(t.UnixMilli()) / 1000
}
