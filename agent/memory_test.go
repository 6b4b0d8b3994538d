package agent

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
)

// TestFreeMemoryWhenIdle frees memory once, ten seconds after the last of a series of runs.
func TestFreeMemoryWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ran, started := tasks.NewSignal(), time.Now()
		var freed []time.Duration
		go freeMemoryWhenIdle(ctx, ran, func() { freed = append(freed, time.Since(started)) })
		for _, wait := range []time.Duration{5, 9, 9, 300, 2, 100} {
			<-time.After(wait * time.Second)
			ran.Notify()
		}
		<-time.After(time.Hour)
		stop()
		synctest.Wait()
		if got := fmt.Sprint(freed); got != "[33s 5m35s 7m15s]" {
			t.Errorf("freed memory after %s", got)
		}
	})
}
