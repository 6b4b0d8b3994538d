// Package racing reports whether tests run under the race detector, which makes pure
// computation five to ten times as slow.
package racing

// Less returns all, or less under the race detector. Use it for repetitions in one goroutine, where no race
// exists; tests also run without the detector.
func Less(all, less int) int {
	if Enabled {
		return less
	}

	return all
}
