package view

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxText is how many bytes of what happened are kept of an event, maxWord of a name or an id
	// that a node chose.
	maxText = 300
	maxWord = 256
	// maxTarget is how many bytes the target of a request has.
	maxTarget = 1000
	// maxInterned is how many texts are shared, maxShared how many bytes each has at most: nodes choose
	// them.
	maxInterned, maxShared = 50_000, maxWord + len("…")
)

// line returns the first line of a text, cut where it is long. It keeps no memory of the rest.
func line(text string, most int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if first = cut(first, most); len(first) < len(text) {
		first = strings.Clone(first)
	}

	return first
}

// cut returns a text, cut where it is long.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most] + "…"
}

// interned are texts that many things have in common, each kept once.
type interned map[string]string

// share returns a text that is kept already, where one is equal; a long one is returned as it is.
func (i interned) share(text string) string {
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
