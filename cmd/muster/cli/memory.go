package cli

import (
	"runtime"
	"runtime/debug"
)

// The heap at which garbage is collected for the first time, in MiB. What is read makes little
// garbage, and a command is over soon: for a manifest of 5,000 files the collections on the way to
// that heap, and for the states of 10,000 nodes, take a tenth of the CPU. Above it, memory costs more
// than it saves: the kernel clears each page that is used for the first time.
const (
	ManifestHeap = 32
	FleetHeap    = 64
)

// CollectLater has nothing collected before the heap has a size in MiB, and then as
// usual. A GOGC of the user holds.
func CollectLater(heap int) {
	const usual, least = 100, 4 // the runtime has this percentage, and so many MiB without one
	before := debug.SetGCPercent(heap / least * usual)
	if before != usual {
		debug.SetGCPercent(before)
		return
	}
	runtime.AddCleanup(&struct{ unused *int }{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}
