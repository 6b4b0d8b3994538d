package main

import (
	"fmt"
	"strings"
	"unicode"
)

// printable makes control characters visible: what nodes and commands say goes
// to a terminal that would obey them.
func printable(s string) string {
	if strings.IndexFunc(s, isUnsafe) < 0 {
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

// isUnsafe says that a terminal may do something with r, or show what follows
// in another order. A tab does no harm.
func isUnsafe(r rune) bool {
	return r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}
