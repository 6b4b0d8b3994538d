// Package brief cuts what is too long for somebody to read.
package brief

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWord is how many characters of a word are shown.
const MaxWord = 200

// Words returns a text whose words have at most MaxWord characters: what is longer, such
// as a value that somebody pasted, ends in how many more it has.
func Words(text string) string {
	if len(text) <= MaxWord {
		return text
	}
	var out strings.Builder
	from := 0
	for from < len(text) {
		end := strings.IndexFunc(text[from:], unicode.IsSpace)
		if end < 0 {
			end = len(text) - from
		}
		word := text[from : from+end]
		out.WriteString(cut(word))
		from += end
		if from < len(text) {
			_, n := utf8.DecodeRuneInString(text[from:])
			out.WriteString(text[from : from+n])
			from += n
		}
	}

	return out.String()
}

func cut(word string) string {
	more, what := utf8.RuneCountInString(word)-MaxWord, "characters"
	switch {
	case more <= 0:
		return word
	case more == 1:
		what = "character"
	}
	end := 0
	for range MaxWord {
		_, n := utf8.DecodeRuneInString(word[end:])
		end += n
	}

	return fmt.Sprintf("%s… (%d more %s)", word[:end], more, what)
}
