package yamlread

import (
	"bytes"
	"strings"
)

// Breaks are the characters that the parser takes for line breaks as
// YAML 1.1 did. YAML 1.2 and every author mean them as text, so they are hidden
// from the parser and put back afterwards.
const Breaks = "\u0085\u2028\u2029"

// hideBreaks replaces Breaks by characters of the private use area that
// the document does not hold, and returns the replacer that undoes it.
func hideBreaks(data []byte) ([]byte, *strings.Replacer) {
	var forth, back []string
	next := rune(0xe000)
	for _, r := range Breaks {
		for bytes.ContainsRune(data, next) {
			next++
		}
		forth = append(forth, string(r), string(next))
		back = append(back, string(next), string(r))
		next++
	}

	return []byte(strings.NewReplacer(forth...).Replace(string(data))), strings.NewReplacer(back...)
}
