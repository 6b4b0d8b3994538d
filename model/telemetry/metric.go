package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Family is one metric that is read from a state S at each scrape. Create it with Gauge or Counter.
type Family[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(s *S, emit Emit)
}

// Emit adds the value of the series with the given label values.
type Emit func(value float64, labels ...string)

// Gauge returns a gauge metric.
func Gauge[S any](name, help string, read func(*S, Emit), labels ...string) Family[S] {
	return Family[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue, read}
}

// Counter returns a counter metric.
func Counter[S any](name, help string, read func(*S, Emit), labels ...string) Family[S] {
	return Family[S]{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read}
}

// Families are the metrics that are read from one state.
type Families[S any] []Family[S]

// Describe implements prometheus.Collector.
func (all Families[S]) Describe(out chan<- *prometheus.Desc) {
	for _, f := range all {
		out <- f.desc
	}
}

// Collect reads all series from a state and sends them to out.
func (all Families[S]) Collect(s *S, out chan<- prometheus.Metric) {
	for _, f := range all {
		f.read(s, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
		})
	}
}

// FlagValue returns 1 for true and 0 for false.
func FlagValue(on bool) float64 {
	if on {
		return 1
	}

	return 0
}

// UnixSeconds returns a time in seconds since 1970, or zero for the zero time.
func UnixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}

	return float64(t.UnixMilli()) / 1000
}
