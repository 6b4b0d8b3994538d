// Package version reads and compares the versions of packages in their parts.
package version

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid is a version that cannot be compared.
var ErrInvalid = errors.New("invalid package version")

// trimTrailingZeroes removes segments .0 before the first hyphen: 1.0.0-rc1
// becomes 1-rc1.
func trimTrailingZeroes(version string) string {
	head, rest, found := strings.Cut(version, "-")
	for strings.HasSuffix(head, ".0") {
		head = strings.TrimSuffix(head, ".0")
	}
	if found {
		return head + "-" + rest
	}

	return head
}

// Version is a version in its parts.
type Version struct{ Epoch, Upstream, Release string }

// Parse reads [epoch:]upstream[-release]; cut splits the last two. A
// missing epoch is 0. An invalid epoch and an empty version wrap ErrInvalid.
func Parse(text string, cut func(string) (upstream, release string)) (Version, error) {
	epoch, rest, found := strings.Cut(text, ":")
	if !found {
		epoch, rest = "0", text
	}
	v := Version{Epoch: epoch}
	v.Upstream, v.Release = cut(rest)
	if v.Upstream == "" || epoch == "" || strings.Trim(epoch, "0123456789") != "" {
		return Version{}, fmt.Errorf("%w: %q", ErrInvalid, text)
	}

	return v, nil
}

// Compare compares two versions by their parts.
func Compare(a, b string, ignoreTrailingZeroes bool, cut func(string) (upstream, release string), compare func(a, b Version) int) (int, error) {
	if ignoreTrailingZeroes {
		a, b = trimTrailingZeroes(a), trimTrailingZeroes(b)
	}
	va, errA := Parse(a, cut)
	vb, errB := Parse(b, cut)
	if err := errors.Join(errA, errB); err != nil {
		return 0, err
	}

	return compare(va, vb), nil
}

// CompareNumbers compares digits of any length by value.
func CompareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")

	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// CutDigits cuts the leading digits.
func CutDigits(s string) (digits, rest string) {
	rest = strings.TrimLeft(s, "0123456789")

	return s[:len(s)-len(rest)], rest
}
