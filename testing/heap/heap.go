// Package heap measures how much memory an operation keeps in use.
package heap

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Peak returns the most bytes of live heap at any collection during f, beyond what
// is live before it. Garbage is collected at every tenth of growth, so little
// is missed; no other test may run meanwhile.
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
