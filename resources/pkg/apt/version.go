package apt

import (
	"cmp"
	"strings"

	"github.com/musterfleet/muster/resources/pkg/version"
)

// VersionCmp compares as dpkg does: epoch, upstream version, revision.
func (*Provider) VersionCmp(a, b string, ignoreTrailingZeroes bool) (int, error) {
	return version.Compare(a, b, ignoreTrailingZeroes, cutRevision, compare)
}

// cutRevision cuts at the last hyphen; a trailing one belongs to upstream.
func cutRevision(text string) (upstream, revision string) {
	if at := strings.LastIndexByte(text, '-'); at >= 0 && at < len(text)-1 {
		return text[:at], text[at+1:]
	}

	return text, ""
}

func compare(a, b version.Version) int {
	return cmp.Or(version.CompareNumbers(a.Epoch, b.Epoch), compareText(a.Upstream, b.Upstream), compareText(a.Release, b.Release))
}

// compareText compares non-digits character by character and digits by value,
// in turn.
func compareText(a, b string) int {
	for a != "" || b != "" {
		var difference int
		if difference, a, b = compareSigns(a, b); difference != 0 {
			return difference
		}
		var da, db string
		da, a = version.CutDigits(a)
		db, b = version.CutDigits(b)
		if difference = version.CompareNumbers(da, db); difference != 0 {
			return difference
		}
	}

	return 0
}

// compareSigns compares up to the next digits of both.
func compareSigns(a, b string) (difference int, restA, restB string) {
	for (a != "" && !isDigit(a[0])) || (b != "" && !isDigit(b[0])) {
		if difference = cmp.Compare(weight(a), weight(b)); difference != 0 {
			return difference, a, b
		}
		a, b = a[1:], b[1:]
	}

	return 0, a, b
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// weight orders the first character: a tilde, the end or digits, letters,
// everything else.
func weight(s string) int {
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
