package facts

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse reads fact files of many keys; the time for one is the same
// however many there are.
func BenchmarkParse(b *testing.B) {
	for _, keys := range []int{10_000, 40_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			var text strings.Builder
			for i := range keys {
				fmt.Fprintf(&text, "key%d: value\n", i)
			}
			for b.Loop() {
				if _, err := Parse("facts.yaml", []byte(text.String())); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*keys), "ns/key")
		})
	}
}
