package model

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsToken reports whether s is one valid token of a subject or a key: letters,
// digits, - and _, at least one.
func IsToken(s string) bool {
	for _, r := range []byte(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}

	return s != ""
}

// IsLine reports whether a text can be printed on one line.
func IsLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Line returns a text on one line of at most a number of bytes. It replaces each character that cannot be printed by a
// space, and ends a shortened text with an ellipsis.
func Line(s string, most int) string {
	var b strings.Builder
	for _, r := range s {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		if b.Len()+utf8.RuneLen(r) > most {
			return b.String() + "…"
		}
		b.WriteRune(r)
	}

	return b.String()
}
