// Package safetext writes text from nodes, commands and users so that terminals and spreadsheets do not execute it.
package safetext

import (
	"fmt"
	"strings"
	"unicode"
)

// Text makes control characters visible, because a terminal would obey them.
func Text(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if IsSafe(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isUnsafe(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}

	return b.String()
}

// IsSafe reports whether a text has no character that Text makes visible.
func IsSafe(s string) bool { return strings.IndexFunc(s, isUnsafe) < 0 }

// isUnsafe reports whether a terminal may act on r, or reorder the text after it. A tab is harmless.
func isUnsafe(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}
