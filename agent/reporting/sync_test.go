package reporting_test

import (
	"context"
	"sync"
	"testing"

	"github.com/musterfleet/muster/model"
)

// TestReportsAreSyncedBeside: reports appended during a sync all arrive, once and in order.
func TestReportsAreSyncedBeside(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir(), 0)
	add(t, b, 1, report(model.KindRun, "changed", 1))
	if got := b.Next(10); len(got) != 0 {
		t.Errorf("before it is synced there are %d", len(got))
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = b.Run(ctx) })
	const count = 500
	all.Go(func() {
		for range count - 1 {
			if _, err := b.Append(report(model.KindRun, "changed", 1)); err != nil {
				t.Error(err)
			}
			b.SyncSoon()
		}
	})
	for seq := uint64(1); seq <= count; {
		<-b.Ready()
		for _, r := range b.Next(count) {
			if r.Seq != seq {
				t.Fatalf("%d comes where %d was expected", r.Seq, seq)
			}
			seq++
		}
		if err := b.Ack(seq - 1); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
}
