package model

import "time"

// EarlierTime returns the earlier of two times. The zero time is before all others.
func EarlierTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}

	return a
}

// EarlierNonZero returns the earlier of two times. A zero time means never.
func EarlierNonZero(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}

// LaterTime returns the later of two times. The zero time is before all others.
func LaterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}

	return b
}
