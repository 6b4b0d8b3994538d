package view

import (
	"strings"
	"unicode/utf8"
)

const (
	// MaxText is how many bytes of what happened are kept of an event, MaxWord of a name or an id
	// that a node chose.
	maxText = 300
	maxWord = 256
	// maxInterned is how many texts are shared, maxShared how many bytes each has at most: nodes choose
	// them.
	maxInterned, maxShared = 50_000, maxWord + len("…")
)

// Line returns the first line of a text, cut where it is long. It keeps no memory of the rest.
func firstLine(text string, most int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first = cutText(first, most); len(first) < len(text) {
		first = strings.Clone(first)
	}

	return first
}

// Cut returns a text, cut where it is long.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most] + "…"
}

// Texts are texts that many things have in common, each kept once.
type internedTexts map[string]string

// Share returns a text that is kept already, where one is equal; a long one is returned as it is.
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
