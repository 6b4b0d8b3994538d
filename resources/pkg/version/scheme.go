package version

import (
	"cmp"
	"fmt"
	"strings"
)

// The version schemes.
const (
	Deb    = "deb"
	RPM    = "rpm"
	Semver = "semver"
)

// Schemes returns the names of all schemes.
func Schemes() []string { return []string{Deb, RPM, Semver} }

// maxLength is the maximum length of a version.
const maxLength = 256

// CompareBy compares two versions by a scheme and returns -1, 0 or 1. Without a scheme it uses
// Semver if both are semantic versions, else Deb. The error wraps ErrInvalid, also for more than 256
// bytes, or names the unknown scheme.
func CompareBy(scheme, a, b string) (order int, err error) {
	for _, text := range []string{a, b} {
		if len(text) > maxLength {
			return 0, fmt.Errorf("%w: it has %d bytes, more than %d", ErrInvalid, len(text), maxLength)
		}
	}
	switch scheme {
	case "":
		if order, err = compareSemver(a, b); err == nil {
			break
		}
		for _, text := range []string{a, b} {
			if digits, _ := CutDigits(strings.TrimPrefix(text, "v")); digits == "" {
				return 0, fmt.Errorf("%w: %q", ErrInvalid, text)
			}
		}
		order, err = CompareDeb(strings.TrimPrefix(a, "v"), strings.TrimPrefix(b, "v"), false)
	case Deb:
		order, err = CompareDeb(a, b, false)
	case RPM:
		order, err = CompareRPM(a, b)
	case Semver:
		order, err = compareSemver(a, b)
	default:
		return 0, fmt.Errorf("unknown version scheme %q: use %s", scheme, strings.Join(Schemes(), ", "))
	}

	return cmp.Compare(order, 0), err
}

// Upstream returns a package version without its epoch and its revision or release.
func Upstream(text string) string {
	if epoch, rest, found := strings.Cut(text, ":"); found && strings.Trim(epoch, "0123456789") == "" {
		text = rest
	}
	if at := strings.LastIndexByte(text, '-'); at > 0 {
		text = text[:at]
	}

	return text
}

// semver is a semantic version (2.0.0) without its build.
type semver struct{ core, pre []string }

// parseSemver parses a semantic version with an optional v prefix.
func parseSemver(text string) (v semver, err error) {
	plain, build, hasBuild := strings.Cut(strings.TrimPrefix(text, "v"), "+")
	core, pre, hasPre := strings.Cut(plain, "-")
	v.core = strings.Split(core, ".")
	valid := len(v.core) == 3 && (!hasBuild || areIdentifiers(build, false))
	for _, number := range v.core {
		valid = valid && isNumber(number)
	}
	if hasPre {
		v.pre = strings.Split(pre, ".")
		valid = valid && areIdentifiers(pre, true)
	}
	if !valid {
		return v, fmt.Errorf("%w: %q is not a semantic version", ErrInvalid, text)
	}

	return v, nil
}

// areIdentifiers reports whether a text consists of identifiers separated by dots. Numbers in a
// pre-release must not have leading zeroes.
func areIdentifiers(text string, isPre bool) bool {
	for id := range strings.SplitSeq(text, ".") {
		if id == "" || strings.Trim(id, "0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
			return false
		}
		if isPre && strings.Trim(id, "0123456789") == "" && !isNumber(id) {
			return false
		}
	}

	return true
}

// isNumber reports whether a text is a number without leading zeroes.
func isNumber(text string) bool {
	digits, rest := CutDigits(text)

	return digits != "" && rest == "" && (digits == "0" || digits[0] != '0')
}

// compareSemver compares by precedence, which ignores the build.
func compareSemver(a, b string) (int, error) {
	va, err := parseSemver(a)
	if err != nil {
		return 0, err
	}
	vb, err := parseSemver(b)
	if err != nil {
		return 0, err
	}
	for i := range va.core {
		if order := CompareNumbers(va.core[i], vb.core[i]); order != 0 {
			return order, nil
		}
	}
	if len(va.pre) == 0 || len(vb.pre) == 0 {
		return cmp.Compare(len(vb.pre), len(va.pre)), nil
	}
	for i := range min(len(va.pre), len(vb.pre)) {
		if order := compareIdentifiers(va.pre[i], vb.pre[i]); order != 0 {
			return order, nil
		}
	}

	return cmp.Compare(len(va.pre), len(vb.pre)), nil
}

// compareIdentifiers compares two identifiers of a pre-release. A number is less than a text.
func compareIdentifiers(a, b string) int {
	switch aNumber, bNumber := isNumber(a), isNumber(b); {
	case aNumber && bNumber:
		return CompareNumbers(a, b)
	case aNumber:
		return -1
	case bNumber:
		return 1
	default:
		return strings.Compare(a, b)
	}
}
