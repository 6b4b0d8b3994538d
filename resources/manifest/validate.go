package manifest

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest/expression"
)

// The forms that the functions of @validate accept.
var (
	floatForm    = regexp.MustCompile(`^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$`)
	durationForm = regexp.MustCompile(`^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|[dDwWMyY]))+)$`)
	hostnameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
	topLevelForm = regexp.MustCompile(`\.[A-Za-z][A-Za-z0-9-]*$`)
)

const (
	maxHostname = 253
	// shellUnsafe lists the characters that make a shell run or redirect commands.
	shellUnsafe = "`$;|&<>\n\r\x00"
)

// checks returns the functions of @validate by name, in both spellings.
func checks() map[string]any {
	out := map[string]any{
		"isRegex":  func(v any, pattern string) (bool, error) { return isMatch("isRegex", v, pattern) },
		"is_regex": func(v any, pattern string) (bool, error) { return isMatch("is_regex", v, pattern) },
	}
	add := func(is func(string) bool, names ...string) {
		for _, name := range names {
			out[name] = func(v any) (bool, error) {
				text, err := checkedText(name, v)
				return err == nil && is(text), err
			}
		}
	}
	add(func(s string) bool { return isAddress(s, true, true) }, "isIP", "is_ip")
	add(func(s string) bool { return isAddress(s, true, false) }, "isIPv4", "is_ipv4")
	add(func(s string) bool { return isAddress(s, false, true) }, "isIPv6", "is_ipv6")
	add(func(s string) bool { _, err := strconv.ParseInt(s, 10, 64); return err == nil }, "isInt", "is_int")
	add(floatForm.MatchString, "isFloat", "is_float")
	add(durationForm.MatchString, "isDuration", "is_duration")
	add(func(s string) bool { return !strings.ContainsAny(s, shellUnsafe) }, "isShellSafe", "is_shellsafe", "is_shell_safe")
	add(isHostname, "isHostname", "is_hostname")
	add(func(s string) bool {
		s = strings.TrimSuffix(s, ".")
		return isHostname(s) && topLevelForm.MatchString(s)
	}, "isFQDN", "is_fqdn")

	return out
}

// withChecks returns the names known to all expressions plus the functions of @validate.
func withChecks(value any) map[string]any {
	out := checks()
	out[expression.NameValue] = value

	return out
}

// checksText reports whether a @validate expression passes the value to a function that needs a
// text.
func checksText(p *expression.Program) bool {
	known := checks()

	return slices.ContainsFunc(p.OfValue, func(name string) bool { return known[name] != nil })
}

// checkedText returns the text of a scalar.
func checkedText(function string, v any) (string, error) {
	value, err := expression.ToValue(v, model.Position{})
	if err != nil || v == nil || !value.IsScalar() {
		return "", fmt.Errorf("%s takes a text, not %s", function, expression.KindOf(v))
	}

	return value.Text, nil
}

func isMatch(function string, v any, pattern string) (bool, error) {
	text, err := checkedText(function, v)
	if err != nil {
		return false, err
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return false, fmt.Errorf("%s: %w", function, err)
	}

	return compiled.MatchString(text), nil
}

func isAddress(text string, v4, v6 bool) bool {
	address, err := netip.ParseAddr(text)

	return err == nil && address.Zone() == "" && (v4 && address.Is4() || v6 && address.Is6())
}

func isHostname(text string) bool { return len(text) <= maxHostname && hostnameForm.MatchString(text) }
