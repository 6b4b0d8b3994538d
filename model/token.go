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
