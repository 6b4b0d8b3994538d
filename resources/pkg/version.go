package pkg

import (
	"errors"
	"fmt"
	"strings"
)

// ErrVersion is a version that cannot be compared.
var ErrVersion = errors.New("invalid package version")

// TrimTrailingZeroes removes segments of .0 at the end of what stands before
// the first hyphen: 1.0.0-rc1 becomes 1-rc1.
func TrimTrailingZeroes(version string) string {
	head, rest, found := strings.Cut(version, "-")
	for strings.HasSuffix(head, ".0") {
		head = strings.TrimSuffix(head, ".0")
	}
	if found {
		return head + "-" + rest
	}

	return head
}

// CutEpoch gives the epoch before the first colon, 0 where there is none, and
// what follows it. An epoch that is no number is an error that wraps ErrVersion.
func CutEpoch(version string) (epoch, rest string, err error) {
	epoch, rest, found := strings.Cut(version, ":")
	if !found {
		epoch, rest = "0", version
	}
	if rest == "" || epoch == "" || strings.Trim(epoch, "0123456789") != "" {
		return "", "", fmt.Errorf("%w: %q", ErrVersion, version)
	}

	return epoch, rest, nil
}

// CompareNumbers compares digits of any length by their value.
func CompareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		if len(a) < len(b) {
			return -1
		}
		return 1
	}

	return strings.Compare(a, b)
}

// CutDigits cuts the digits at the beginning off.
func CutDigits(s string) (digits, rest string) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}

	return s[:end], s[end:]
}
