// Package telemetry holds the parts of metrics and logs that the agent, the fleet and the
// NATS store share: Prometheus metrics read from a state, bounded label values, and a
// rate-limited log.
package telemetry

import (
	"maps"
	"slices"
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

const (
	// maxLabels limits the number of label values, and maxLabelLength their length in bytes. An operator of
	// one group can create any number of keys.
	maxLabels      = 500
	maxLabelLength = 200
	// OtherLabel is the shared label value of all other keys. It is never a valid key.
	OtherLabel = "other"
)

// LabelValues is the set of keys that have a separate label value. Create it as an empty map.
type LabelValues map[string]bool

// Of returns the label value of a key: the key or OtherLabel.
func (n LabelValues) Of(key string) string {
	if n[key] {
		return key
	}

	return OtherLabel
}

// RetainLabels removes the label values of all keys that are not in keys, and returns them. It then adds
// keys until the set is full. A key stays in the set as long as each call contains it.
func RetainLabels[V any](n LabelValues, keys map[string]V) (gone []string) {
	for key := range n {
		if _, ok := keys[key]; !ok {
			gone = append(gone, key)
			delete(n, key)
		}
	}
	if len(n) == len(keys) || len(n) == maxLabels {
		return gone
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if len(n) < maxLabels && len(key) <= maxLabelLength {
			n[key] = true
		}
	}

	return gone
}
