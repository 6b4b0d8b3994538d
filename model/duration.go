package model

import (
	"fmt"
	"math"
	"time"
)

// Duration is a time.Duration that is written as text, 30s or 5m, in documents.
type Duration time.Duration

// Std returns the standard library's duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns the text form, for example 1m30s.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the text form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form; a number without a unit and a negative
// duration are errors.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	switch {
	case err != nil:
		return fmt.Errorf("invalid duration %q, write it with its unit, for example 30s or 5m", b)
	case parsed < 0:
		return fmt.Errorf("invalid duration %q, it must not be negative", b)
	}
	*d = Duration(parsed)

	return nil
}

// TTL is a time to live. It is written as a duration, or as never.
type TTL time.Duration

// Never is a time to live without an end.
const Never TTL = math.MaxInt64

// never is the text of Never.
const never = "never"

// Std returns the standard library's duration.
func (t TTL) Std() time.Duration { return time.Duration(t) }

// String returns the text form.
func (t TTL) String() string {
	if t == Never {
		return never
	}

	return time.Duration(t).String()
}

// MarshalText returns the text form.
func (t TTL) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the text form. It returns the errors of Duration.
func (t *TTL) UnmarshalText(b []byte) error {
	if string(b) == never {
		*t = Never
		return nil
	}

	return (*Duration)(t).UnmarshalText(b)
}

// ShortDuration returns a duration with the digits that matter to people: 850µs, 4.1ms,
// 12ms, 1.25s.
func ShortDuration(d time.Duration) string {
	unit := time.Microsecond
	for _, u := range []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		if d >= 20*u {
			unit = u
		}
	}

	return d.Round(unit).String()
}
