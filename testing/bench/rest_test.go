package bench

import (
	"os"
	"testing"
	"time"
)

// BenchmarkAtRest measures an agent with 1,000 watched files while nothing happens, for as
// long as MUSTER_BENCH_REST says ("10m"): its memory each second.
func BenchmarkAtRest(b *testing.B) {
	const settle = 40 * time.Second
	rest := 20 * time.Second
	if text := os.Getenv("MUSTER_BENCH_REST"); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil {
			b.Fatalf("MUSTER_BENCH_REST: %v", err)
		}
		rest = asked
	}
	muster := build(b)
	for b.Loop() {
		a := holding(b, muster, b.TempDir(), 1000, "", driftContent)
		<-time.After(settle) // memory is given back after half a minute
		before := cpu(b, a.pid)
		var sum, most float64
		seconds := 0
		for began := time.Now(); time.Since(began) < rest; seconds++ {
			<-time.After(time.Second)
			now := resident(b, a.pid)
			sum, most = sum+now, max(most, now)
		}
		b.ReportMetric(float64(cpu(b, a.pid)-before)/float64(rest)*100, "cpu-%")
		b.ReportMetric(sum/float64(seconds), "resident-MB")
		b.ReportMetric(most, "most-MB")
	}
}
