package bench

import (
	"os"
	"testing"
	"time"
)

// BenchmarkAtRest measures the memory and CPU of an idle agent with 1,000 watched files. It reads
// the memory once per second for MUSTER_BENCH_REST, 20 s by default.
func BenchmarkAtRest(b *testing.B) {
	const settle = 15 * time.Second // longer than the agent waits before it frees memory
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
		<-time.After(settle)
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
