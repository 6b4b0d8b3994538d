// Package times compares times.
package times

import "time"

// Earliest returns the earlier of two times; zero is before all others.
func Earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}

	return a
}

// Sooner returns the earlier of two times of which zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}

// Later returns the later of two times; zero is before all others.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}
