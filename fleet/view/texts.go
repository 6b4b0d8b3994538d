package view

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxText limits the bytes of an event's description, MaxWord of a name or an id that a node chose.
	maxText = 300
	maxWord = 256
	// maxInterned limits the shared texts, maxShared the bytes of each, because nodes choose them.
	maxInterned, maxShared = 50_000, maxWord + len("…")
)

// firstLine returns the first line of a text. A long line is cut. It does not retain the memory of the text.
func firstLine(text string, most int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first = cutText(first, most); len(first) < len(text) {
		first = strings.Clone(first)
	}

	return first
}

// cutText returns a text that is cut if it is long.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most] + "…"
}

// internedTexts stores texts that many entries share, each once.
type internedTexts map[string]string

// Share returns the stored text that equals a text. It returns a long text unchanged.
func (i internedTexts) Share(text string) string {
	if text == "" || len(text) > maxShared {
		return text
	}
	if known, is := i[text]; is {
		return known
	}
	if len(i) >= maxInterned {
		clear(i)
	}
	text = strings.Clone(text)
	i[text] = text

	return text
}
