package kvstore_test

import (
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// A thousand reports, as an outbox hands them over.
func BenchmarkPublishReports(b *testing.B) {
	_, store := kvtest.New(b)
	for b.Loop() {
		b.StopTimer()
		batch := make([]model.Report, 1000)
		for i := range batch {
			batch[i] = kvtest.Outgoing("web01", model.KindRun, "stable", uint64(i+1))
		}
		b.StartTimer()
		if n, err := store.PublishReports(b.Context(), batch); err != nil {
			b.Fatal(n, err)
		}
	}
}
