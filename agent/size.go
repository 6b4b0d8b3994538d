package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as text with a unit: 64MiB, 500kB, 4096.
type Size int64

// sizeUnits are the units; one that another ends with comes after it.
func sizeUnits() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {"", 1},
	}
}

// String returns the size in the largest binary unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits()[:3] {
		if s > 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}

	return strconv.FormatInt(int64(s), 10)
}

// MarshalText returns the text form.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the text form; blanks before the unit are allowed.
func (s *Size) UnmarshalText(b []byte) error {
	for _, u := range sizeUnits() {
		digits, ok := strings.CutSuffix(string(b), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}

	return fmt.Errorf("invalid size %q, write it as a number with a unit, for example 64MiB", b)
}
