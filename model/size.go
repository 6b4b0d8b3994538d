package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written with or without a unit.
type Size int64

// sizeUnit is a unit of a Size.
type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits returns the units, longest first.
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
