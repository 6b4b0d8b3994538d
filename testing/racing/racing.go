// Package racing reports whether tests run under the race detector, which makes pure
// computation five to ten times as slow.
package racing

// Less returns all, or under the race detector less: for repetitions of what runs in one
// goroutine, in which there is nothing to detect. Tests run without the detector too.
func Less(all, less int) int {
	if Enabled {
		return less
	}

	return all
}
