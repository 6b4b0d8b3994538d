package localcmd

import (
	"runtime"
	"runtime/debug"
)

// firstCollection is the heap at which garbage is collected for the first time,
// in percent of the 4 MiB of the runtime: 32 MiB. A manifest that is read makes
// little garbage, and a command is over soon: for 5,000 files the collections on the
// way to that heap take a tenth of the CPU. Above it, memory costs more than it saves.
const firstCollection = 800

// collectLater has nothing collected before the heap has that size, and then as
// usual. A GOGC of the user holds.
func collectLater() {
	const usual = 100
	before := debug.SetGCPercent(firstCollection)
	if before != usual {
		debug.SetGCPercent(before)
		return
	}
	runtime.AddCleanup(&struct{ unused *int }{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
}
