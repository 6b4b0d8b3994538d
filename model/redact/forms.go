package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
)

// minForm is the shortest searched form of a secret other than the secret itself.
const minForm = 6

// pattern is a text to search for.
type pattern struct {
	text string
	// bits means that the adjacent characters may hold bits of the secret, as in base64.
	bits bool
}

var quotes = regexp.MustCompile(`'+`)

// formsOf returns the printed forms of a secret: unchanged, quoted for shells and YAML, escaped for a URL
// query, and encoded.
func formsOf(value string) []pattern {
	out := []pattern{{text: value}}
	add := func(text string, bits bool) {
		for _, known := range out {
			if known.text == text {
				return
			}
		}
		if len(text) >= minForm {
			out = append(out, pattern{text, bits})
		}
	}
	for _, quote := range []string{"''", `'\''`, `'"'"'`} {
		add(strings.ReplaceAll(value, "'", quote), false)
	}
	add(strings.Trim(quotes.ReplaceAllStringFunc(value, func(q string) string { return "'" + strings.Repeat(`\'`, len(q)) + "'" }), "'"), false)
	add(strings.ReplaceAll(value, " ", "+"), false)
	// Documents are UTF-8. Encoders replace invalid bytes, one by one or together.
	add(string([]rune(value)), false)
	add(strings.ToValidUTF8(value, "\ufffd"), false)
	digits := hex.EncodeToString([]byte(value))
	add(digits, false)
	add(strings.ToUpper(digits), false)
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			// With six bits per character, use only the characters that depend on the value alone.
			text := encoding.EncodeToString(append(make([]byte, before), value...))
			add(text[(before*8+5)/6:(before+len(value))*8/6], true)
		}
	}
	for before := range 5 {
		text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(append(make([]byte, before), value...))
		add(text[(before*8+4)/5:(before+len(value))*8/5], true)
	}

	return out
}

// matches returns the length of the pattern at the beginning of a text: all of it, or the part before a cut,
// if that part is at least minRedacted long.
func (p pattern) matches(text string, cut, least int) int {
	switch {
	case strings.HasPrefix(text, p.text):
		return len(p.text)
	case cut >= least && cut < len(p.text) && strings.HasPrefix(p.text, text[:cut]):
		return cut
	default:
		return 0
	}
}

// endsIn returns the length of the text after a cut that is the end of the pattern, or a part of it up to the
// next cut.
func (p pattern) endsIn(text string, cut, least int) int {
	if len(text) < least {
		return 0
	}
	for from := 1; from+least <= len(p.text); from++ {
		i := strings.Index(p.text[from:], text[:least])
		if i < 0 {
			return 0
		}
		from += i
		if n := (pattern{text: p.text[from:]}).matches(text, cut, least); n > 0 {
			return n
		}
	}

	return 0
}

// extent returns the position of a match, including the adjacent characters that hold bits of it.
func (p pattern) extent(text string, from, to int) (int, int) {
	if !p.bits {
		return from, to
	}
	if from > 0 && isBase64(text[from-1]) {
		from--
	}
	if to < len(text) && isBase64(text[to]) {
		to++
	}
	for to < len(text) && text[to] == '=' {
		to++
	}

	return from, to
}

func isBase64(c byte) bool { return base64Value(c) >= 0 }
