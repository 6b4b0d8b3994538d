//go:build race

package e2e

// raceEnabled says that these tests run under the race detector, and so the
// binary they start does too.
const raceEnabled = true
