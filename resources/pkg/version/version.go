// Package version reads and compares the versions of packages in their parts.
package version

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/semver"
)

// ErrInvalid is a version that cannot be compared.
var ErrInvalid = errors.New("invalid package version")

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
func Compare(a, b string, cut func(string) (upstream, release string), compare func(a, b Version) int) (int, error) {
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

// CompareDeb compares as dpkg does: epoch, upstream version, revision.
func CompareDeb(a, b string) (int, error) { return Compare(a, b, cutRevision, orderDeb) }

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

// CompareRPM compares as rpm does: epoch, version and, where both have one, release.
func CompareRPM(a, b string) (int, error) { return Compare(a, b, cutRelease, orderRPM) }

// CompareRPMStrictly compares as CompareRPM does. If rpm treats different versions as equal, such
// as 01 and 1, it compares them as text.
func CompareRPMStrictly(a, b string) (int, error) {
	return Compare(a, b, cutRelease, func(a, b Version) int {
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
		order, err = CompareDeb(strings.TrimPrefix(a, "v"), strings.TrimPrefix(b, "v"))
	case Deb:
		order, err = CompareDeb(a, b)
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

// compareSemver compares semantic versions by precedence, which ignores the build. A v may precede them.
func compareSemver(a, b string) (int, error) {
	a, b = "v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v")
	for _, text := range []string{a, b} {
		if semver.Canonical(text)+semver.Build(text) != text {
			return 0, fmt.Errorf("%w: %q is not a semantic version", ErrInvalid, text[1:])
		}
	}

	return semver.Compare(a, b), nil
}
