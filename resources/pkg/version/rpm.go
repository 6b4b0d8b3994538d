package version

import (
	"cmp"
	"strings"
)

// CompareRPM compares as rpm does: epoch, version and, where both have one, release.
func CompareRPM(a, b string) (int, error) {
	return Compare(a, b, false, cutRelease, orderRPM)
}

// CompareRPMStrictly compares as CompareRPM does. If rpm treats different versions as equal, such
// as 01 and 1, it compares them as text.
func CompareRPMStrictly(a, b string, ignoreTrailingZeroes bool) (int, error) {
	return Compare(a, b, ignoreTrailingZeroes, cutRelease, func(a, b Version) int {
		return cmp.Or(orderRPM(a, b), compareParts(a, b, strings.Compare))
	})
}

func orderRPM(a, b Version) int { return compareParts(a, b, rpmText) }

// cutRelease cuts at the first hyphen.
func cutRelease(text string) (upstream, release string) {
	upstream, release, _ = strings.Cut(text, "-")

	return upstream, release
}

// compareParts compares part by part. A version without a release equals any
// release.
func compareParts(a, b Version, text func(a, b string) int) int {
	order := cmp.Or(CompareNumbers(a.Epoch, b.Epoch), text(a.Upstream, b.Upstream))
	if order == 0 && a.Release != "" && b.Release != "" {
		order = text(a.Release, b.Release)
	}

	return order
}

// rpmText compares segments of digits or letters in turn. A tilde sorts
// before everything, also the end; a caret after the end but before everything
// else.
func rpmText(a, b string) int {
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
			if order := rpmCaret(a, b); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
			continue
		case a == "" || b == "":
			return cmp.Compare(len(a), len(b))
		}
		var order int
		if order, a, b = rpmSegment(a, b); order != 0 {
			return order
		}
	}
}

// rpmCaret compares when one side at least begins with a caret.
func rpmCaret(a, b string) int {
	switch {
	case a == "":
		return -1
	case b == "":
		return 1
	default:
		return hasPrefix(b, "^") - hasPrefix(a, "^")
	}
}

// rpmSegment compares the first segments; digits are newer than letters.
func rpmSegment(a, b string) (order int, restA, restB string) {
	da, restA := CutDigits(a)
	db, restB := CutDigits(b)
	switch {
	case da != "" && db != "":
		return CompareNumbers(da, db), restA, restB
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

// OrderRPM orders versions of rpm's output, which are always valid.
func OrderRPM(a, b string) int {
	order, err := CompareRPM(a, b)
	if err != nil {
		return strings.Compare(a, b)
	}

	return order
}
