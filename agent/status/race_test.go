package status_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestScrapesLoseNoRun of a manifest that is assigned during scrapes.
func TestScrapesLoseNoRun(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	assigned := map[string]model.ManifestState{}
	m := status.NewMetrics(status.Sources{
		State: func() model.NodeState {
			mu.Lock()
			defer mu.Unlock()
			return model.NodeState{Manifests: maps.Clone(assigned)}
		},
		Connection: func() (bool, time.Time) { return true, time.Time{} },
		Outbox:     func() reporting.Stats { return reporting.Stats{} },
		Requests:   func() map[string]uint64 { return nil },
		Log:        hosttest.Log(t),
	})
	var scrapes sync.WaitGroup
	done := make(chan struct{})
	scrapes.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				gather(t, m)
			}
		}
	})
	const runs = 50
	for i := range runs {
		key := fmt.Sprintf("group.web.m%03d", i)
		mu.Lock()
		assigned[key] = model.ManifestState{Outcome: model.OutcomeStable}
		mu.Unlock()
		m.Ran(key, &model.Run{Cause: model.CauseManifest})
	}
	close(done)
	scrapes.Wait()
	if got := series(scrape(t, m), "muster_runs_total"); len(got) != runs {
		t.Errorf("%d runs are counted, of %d", len(got), runs)
	}
}
