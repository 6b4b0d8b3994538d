package model

import (
	"fmt"
	"strings"
	"unicode"
)

// SafeText makes control characters visible, because a terminal would obey them.
func SafeText(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if IsSafeText(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isUnsafeRune(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}

	return b.String()
}

// IsSafeText reports whether a text has no character that Text makes visible.
func IsSafeText(s string) bool { return strings.IndexFunc(s, isUnsafeRune) < 0 }

// isUnsafeRune reports whether a terminal may act on r, or reorder the text after it. A tab is harmless.
func isUnsafeRune(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}
