package apt

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
)

// version is a version of Debian in its parts.
type version struct{ epoch, upstream, revision string }

// parseVersion reads [epoch:]upstream[-revision]. A hyphen with nothing after it
// is part of upstream. Its error wraps pkg.ErrVersion.
func parseVersion(text string) (version, error) {
	epoch, rest, err := pkg.CutEpoch(text)
	if err != nil {
		return version{}, err
	}
	v := version{epoch: epoch, upstream: rest}
	if at := strings.LastIndexByte(rest, '-'); at >= 0 && at < len(rest)-1 {
		v.upstream, v.revision = rest[:at], rest[at+1:]
	}
	if v.upstream == "" {
		return version{}, fmt.Errorf("%w: %q", pkg.ErrVersion, text)
	}

	return v, nil
}

// VersionCmp compares as dpkg does: epoch, upstream version, revision.
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

	return cmp.Or(pkg.CompareNumbers(va.epoch, vb.epoch), compareText(va.upstream, vb.upstream), compareText(va.revision, vb.revision)), nil
}

// compareText compares what is no digits character by character and digits by
// their value, in turn, until something differs.
func compareText(a, b string) int {
	for a != "" || b != "" {
		var difference int
		if difference, a, b = compareSigns(a, b); difference != 0 {
			return difference
		}
		var da, db string
		da, a = pkg.CutDigits(a)
		db, b = pkg.CutDigits(b)
		if difference = pkg.CompareNumbers(da, db); difference != 0 {
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

// weight orders what may stand at the beginning of s: a tilde, the end or
// digits, letters, everything else.
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
