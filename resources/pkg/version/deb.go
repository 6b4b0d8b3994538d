package version

import (
	"cmp"
	"strings"
)

// CompareDeb compares as dpkg does: epoch, upstream version, revision.
func CompareDeb(a, b string, ignoreTrailingZeroes bool) (int, error) {
	return Compare(a, b, ignoreTrailingZeroes, cutRevision, orderDeb)
}

// cutRevision cuts at the last hyphen; a trailing one belongs to upstream.
func cutRevision(text string) (upstream, revision string) {
	if at := strings.LastIndexByte(text, '-'); at >= 0 && at < len(text)-1 {
		return text[:at], text[at+1:]
	}

	return text, ""
}

func orderDeb(a, b Version) int {
	return cmp.Or(CompareNumbers(a.Epoch, b.Epoch), debText(a.Upstream, b.Upstream), debText(a.Release, b.Release))
}

// debText alternates: it compares non-digits by character and digits by value.
func debText(a, b string) int {
	for a != "" || b != "" {
		var difference int
		if difference, a, b = debSigns(a, b); difference != 0 {
			return difference
		}
		var da, db string
		da, a = CutDigits(a)
		db, b = CutDigits(b)
		if difference = CompareNumbers(da, db); difference != 0 {
			return difference
		}
	}

	return 0
}

// debSigns compares up to the next digits of both.
func debSigns(a, b string) (difference int, restA, restB string) {
	for (a != "" && !isDigit(a[0])) || (b != "" && !isDigit(b[0])) {
		if difference = cmp.Compare(debWeight(a), debWeight(b)); difference != 0 {
			return difference, a, b
		}
		a, b = a[1:], b[1:]
	}

	return 0, a, b
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// debWeight orders the first character: a tilde, the end or digits, letters,
// everything else.
func debWeight(s string) int {
	const behindLetters = 256
	switch {
	case s == "" || isDigit(s[0]):
		return 0
	case s[0] == '~':
		return -1
	case s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z':
		return int(s[0])
	default:
		return int(s[0]) + behindLetters
	}
}
