package bench

import (
	"testing"
	"time"
)

// BenchmarkAtRest measures an agent with 1,000 watched files while nothing happens.
func BenchmarkAtRest(b *testing.B) {
	const settle, rest = 40 * time.Second, 20 * time.Second
	muster := build(b)
	for b.Loop() {
		a := holding(b, muster, b.TempDir(), 1000, "", driftContent)
		<-time.After(settle) // memory is given back after half a minute
		before := cpu(b, a.pid)
		<-time.After(rest)
		b.ReportMetric(float64(cpu(b, a.pid)-before)/float64(rest)*100, "cpu-%")
		b.ReportMetric(resident(b, a.pid), "resident-MB")
	}
}
