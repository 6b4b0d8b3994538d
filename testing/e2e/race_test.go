//go:build race

package e2e

// raceEnabled reports whether these tests run under the race detector, and so the
// binary they start does too.
const raceEnabled = true
