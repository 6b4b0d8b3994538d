package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"strconv"
	"strings"
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

// Size is a number of bytes, written with or without a unit.
type Size int64

type sizeUnit struct {
	name  string
	bytes int64
}

func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
	}
}

// String returns the size with the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}

	return strconv.FormatInt(int64(s), 10)
}

// MarshalText returns the text form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a whole number, with or without a unit.
func (s *Size) UnmarshalText(b []byte) error {
	text, factor := string(b), int64(1)
	for _, u := range sizeUnits() {
		if number, found := strings.CutSuffix(text, u.name); found {
			text, factor = strings.TrimRight(number, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("invalid size %q, write a number of bytes, or one with its unit, for example 500MB or 10GiB", b)
	}
	*s = Size(n * factor)

	return nil
}

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

// DigestPrefix begins every digest of bytes: sha256-<hex>.
const DigestPrefix = "sha256-"

// DigestOf names bytes by their SHA-256.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)

	return DigestPrefix + hex.EncodeToString(sum[:])
}

// DigestFrom returns the digest of the bytes written to h, a SHA-256 hash.
func DigestFrom(h hash.Hash) string { return DigestPrefix + hex.EncodeToString(h.Sum(nil)) }
