package dnf

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
)

// version is a version of rpm in its parts. Without a release it is that of any.
type version struct{ epoch, version, release string }

// parseVersion reads [epoch:]version[-release]. Its error wraps pkg.ErrVersion.
func parseVersion(text string) (version, error) {
	epoch, rest, err := pkg.CutEpoch(text)
	if err != nil {
		return version{}, err
	}
	v := version{epoch: epoch}
	v.version, v.release, _ = strings.Cut(rest, "-")
	if v.version == "" {
		return version{}, fmt.Errorf("%w: %q", pkg.ErrVersion, text)
	}

	return v, nil
}

// VersionCmp compares as rpm does: epoch, version and, when both have one,
// release. What rpm takes for equal although it is written differently, 01 and 1,
// is compared as text.
func (Provider) VersionCmp(a, b string, ignoreTrailingZeroes bool) (int, error) {
	if ignoreTrailingZeroes {
		a, b = pkg.TrimTrailingZeroes(a), pkg.TrimTrailingZeroes(b)
	}
	va, err := parseVersion(a)
	if err != nil {
		return 0, err
	}
	vb, err := parseVersion(b)
	if err != nil {
		return 0, err
	}
	order := va.compare(vb)
	if order == 0 {
		order = strings.Compare(va.version, vb.version)
	}
	if order == 0 && va.release != "" && vb.release != "" {
		order = strings.Compare(va.release, vb.release)
	}

	return order, nil
}

// compare is rpm's own comparison.
func (v version) compare(other version) int {
	order := cmp.Or(pkg.CompareNumbers(v.epoch, other.epoch), compareText(v.version, other.version))
	if order == 0 && v.release != "" && other.release != "" {
		order = compareText(v.release, other.release)
	}

	return order
}

// compare orders what rpm itself said, which is always in order.
func compare(a, b string) int {
	va, errA := parseVersion(a)
	vb, errB := parseVersion(b)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}

	return va.compare(vb)
}

// compareText compares segments of digits or letters in turn. A tilde comes
// before everything, also the end, and a caret after the end but before everything else.
func compareText(a, b string) int {
	for {
		a, b = strings.TrimLeftFunc(a, isSeparator), strings.TrimLeftFunc(b, isSeparator)
		switch {
		case strings.HasPrefix(a, "~") || strings.HasPrefix(b, "~"):
			if order := hasPrefix(b, "~") - hasPrefix(a, "~"); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
			continue
		case strings.HasPrefix(a, "^") || strings.HasPrefix(b, "^"):
			if order := compareCaret(a, b); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
			continue
		case a == "" || b == "":
			return cmp.Compare(len(a), len(b))
		}
		var order int
		if order, a, b = compareSegment(a, b); order != 0 {
			return order
		}
	}
}

// compareCaret compares where at least one begins with a caret.
func compareCaret(a, b string) int {
	switch {
	case a == "":
		return -1
	case b == "":
		return 1
	default:
		return hasPrefix(b, "^") - hasPrefix(a, "^")
	}
}

// compareSegment compares the first segments of both; digits are newer than letters.
func compareSegment(a, b string) (order int, restA, restB string) {
	da, restA := pkg.CutDigits(a)
	db, restB := pkg.CutDigits(b)
	switch {
	case da != "" && db != "":
		return pkg.CompareNumbers(da, db), restA, restB
	case da != "":
		return 1, restA, restB
	case db != "":
		return -1, restA, restB
	}
	la, restA := cutLetters(a)
	lb, restB := cutLetters(b)

	return strings.Compare(la, lb), restA, restB
}

func hasPrefix(s, prefix string) int {
	if strings.HasPrefix(s, prefix) {
		return 1
	}

	return 0
}

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isSeparator(c rune) bool {
	return !isLetter(c) && (c < '0' || c > '9') && c != '~' && c != '^'
}

func cutLetters(s string) (letters, rest string) {
	end := strings.IndexFunc(s, func(c rune) bool { return !isLetter(c) })
	if end < 0 {
		return s, ""
	}

	return s[:end], s[end:]
}
