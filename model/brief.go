package model

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWordLength is the number of characters of a word that ShortenWords keeps.
const MaxWordLength = 200

// ShortenWords cuts each word of a text after MaxWordLength characters and appends the number of
// removed characters.
func ShortenWords(text string) string {
	if len(text) <= MaxWordLength {
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
		out.WriteString(shortenWord(word))
		from += end
		if from < len(text) {
			_, n := utf8.DecodeRuneInString(text[from:])
			out.WriteString(text[from : from+n])
			from += n
		}
	}

	return out.String()
}

func shortenWord(word string) string {
	more, what := utf8.RuneCountInString(word)-MaxWordLength, "characters"
	switch {
	case more <= 0:
		return word
	case more == 1:
		what = "character"
	}
	end := 0
	for range MaxWordLength {
		_, n := utf8.DecodeRuneInString(word[end:])
		end += n
	}

	return fmt.Sprintf("%s… (%d more %s)", word[:end], more, what)
}
