//go:build !race

package racing

// Enabled reports whether this is built with the race detector.
const Enabled = false
