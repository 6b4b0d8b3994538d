package dnf

import (
	"cmp"
	"strings"

	"github.com/musterfleet/muster/resources/pkg/version"
)

// VersionCmp compares as rpm does: epoch, version and, when both have one,
// release. Versions that rpm takes for equal although they differ, 01 and 1,
// are compared as text.
func (*Provider) VersionCmp(a, b string, ignoreTrailingZeroes bool) (int, error) {
	return version.Compare(a, b, ignoreTrailingZeroes, cutRelease, func(a, b version.Version) int {
		return cmp.Or(compareParts(a, b, compareText), compareParts(a, b, strings.Compare))
	})
}

// cutRelease cuts at the first hyphen.
func cutRelease(text string) (upstream, release string) {
	upstream, release, _ = strings.Cut(text, "-")

	return upstream, release
}

// compareParts compares part by part. A version without a release equals any
// release.
func compareParts(a, b version.Version, text func(a, b string) int) int {
	order := cmp.Or(version.CompareNumbers(a.Epoch, b.Epoch), text(a.Upstream, b.Upstream))
	if order == 0 && a.Release != "" && b.Release != "" {
		order = text(a.Release, b.Release)
	}

	return order
}

// compare orders versions of rpm's output, which are always valid.
func compare(a, b string) int {
	va, errA := version.Parse(a, cutRelease)
	vb, errB := version.Parse(b, cutRelease)
	if errA != nil || errB != nil {
		return strings.Compare(a, b)
	}

	return compareParts(va, vb, compareText)
}

// compareText compares segments of digits or letters in turn. A tilde sorts
// before everything, also the end; a caret after the end but before everything
// else.
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

// compareCaret compares when one side at least begins with a caret.
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

// compareSegment compares the first segments; digits are newer than letters.
func compareSegment(a, b string) (order int, restA, restB string) {
	da, restA := version.CutDigits(a)
	db, restB := version.CutDigits(b)
	switch {
	case da != "" && db != "":
		return version.CompareNumbers(da, db), restA, restB
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
