// Package heap measures how much memory an operation keeps in use.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"

	"github.com/musterfleet/muster/testing/alone"
)

// Alone runs the calling test in a separate process and reports whether this is that process. Other
// goroutines would add their allocations to the measurement, and more on a busy machine.
func Alone(t *testing.T) bool {
	t.Helper()

	return alone.Run(t, "GODEBUG=gcstoptheworld=1")
}

// Peak returns the maximum of live heap during f in bytes, above the live heap before. It collects garbage
// after every tenth of growth, so little is missed. Call it in a process of Alone, without parallel tests.
func Peak(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before := live()
	var most, done atomic.Int64
	watch(&most, &done)
	f()
	runtime.GC()
	done.Store(1)

	return max(most.Load(), live()) - before
}

// watch notes the live heap at every collection, by an object that each of them frees.
func watch(most, done *atomic.Int64) {
	runtime.SetFinalizer(&struct{ _ [64]byte }{}, func(any) {
		most.Store(max(most.Load(), live()))
		if done.Load() == 0 {
			watch(most, done)
		}
	})
}

// live is what the last collection found in use.
func live() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)

	return int64(sample[0].Value.Uint64())
}
