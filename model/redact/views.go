package redact

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// span is a part of a text.
type span struct{ from, to int32 }

// view is a text with its escapes decoded, and the position of each byte in the original text. The positions
// of the original text are nil.
type view struct {
	text string
	at   []span
}

// origin returns the position of a part of the view in the original text.
func (v view) origin(from, to int) span {
	if v.at == nil {
		return span{int32(from), int32(to)}
	}

	first, last := v.at[from], v.at[to-1]

	return span{min(first.from, last.from), max(first.to, last.to)}
}

// within returns the view of a text with positions in v.
func (v view) within(text string, at []span) view {
	for i, s := range at {
		at[i] = v.origin(int(s.from), int(s.to))
	}

	return view{text: text, at: at}
}

// reading collects the bytes of a text without escapes.
type reading struct {
	text []byte
	at   []span
}

// copy adds a part of a text unchanged.
func (r *reading) copy(text string, from, to int) {
	r.text = append(r.text, text[from:to]...)
	for i := from; i < to; i++ {
		r.at = append(r.at, span{int32(i), int32(i + 1)})
	}
}

// add adds the meaning of a part of a text.
func (r *reading) add(means string, from, to int) {
	r.text = append(r.text, means...)
	for range len(means) {
		r.at = append(r.at, span{int32(from), int32(to)})
	}
}

// read decodes a text. The function returns the meaning and the length of an escape at the beginning of a
// text, or 0 if there is none. Each escape begins with one of marks. Without marks in the text there is no
// reading.
func read(text, marks string, escape func(string) (string, int)) (string, []span) {
	var r reading
	end, at := 0, 0
	for next := strings.IndexAny(text, marks); next >= 0; next = strings.IndexAny(text[at:], marks) {
		at += next
		means, n := escape(text[at:])
		if n == 0 {
			at++
			continue
		}
		r.copy(text, end, at)
		r.add(means, at, at+n)
		at += n
		end = at
	}
	if end == 0 {
		return "", nil
	}
	r.copy(text, end, len(text))

	return string(r.text), r.at
}

// unescaped decodes the backslashes of JSON, YAML, Go and shells.
func unescaped(text string) (string, []span) { return read(text, `\`, backslash) }

func backslash(s string) (string, int) {
	if len(s) < 2 {
		return "", 0
	}
	if high, n := utf16Escape(s); n > 0 {
		if low, m := utf16Escape(s[n:]); m > 0 && utf16.IsSurrogate(high) {
			high, n = utf16.DecodeRune(high, low), n+m
		}
		return string(high), n
	}
	if i := strings.IndexByte("eN_LP", s[1]); i >= 0 {
		return []string{"\x1b", "\u0085", "\u00a0", "\u2028", "\u2029"}[i], 2 // only in YAML
	}
	r, multibyte, rest, err := strconv.UnquoteChar(s, '"')
	switch n := len(s) - len(rest); {
	case err != nil:
		_, n = utf8.DecodeRuneInString(s[1:])
		return s[1 : 1+n], 1 + n
	case multibyte:
		return string(r), n
	default:
		return string([]byte{byte(r)}), n
	}
}

// utf16Escape returns the UTF-16 unit of \uXXXX.
func utf16Escape(s string) (rune, int) {
	const length = len(`\u0000`)
	if len(s) < length || s[:2] != `\u` {
		return 0, 0
	}
	unit, err := strconv.ParseUint(s[2:length], 16, 16)
	if err != nil {
		return 0, 0
	}

	return rune(unit), length
}

// unpercented decodes the escapes of URLs.
func unpercented(text string) (string, []span) {
	return read(text, "%", func(s string) (string, int) {
		if len(s) < 3 {
			return "", 0
		}
		var b [1]byte
		if _, err := hex.Decode(b[:], []byte(s[1:3])); err != nil {
			return "", 0
		}
		return string(b[:]), 3
	})
}

// unwrapped removes line ends, with the indentation and diff mark of the next line.
func unwrapped(text string) (string, []span) {
	isDiff := strings.HasPrefix(text, "--- ")

	return read(text, "\r\n", func(s string) (string, int) {
		n := len(s) - len(strings.TrimLeft(s, "\r\n\t "))
		if isDiff && n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		return "", n
	})
}
