// Package redact replaces secrets in texts of other programs.
package redact

import (
	"cmp"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// minRedacted is the shortest value that is searched for, and the shortest part of
// one where a text was cut: shorter ones would redact every second word and hide
// nothing.
const minRedacted = 4

// Redactor replaces known secrets in texts of other programs, such as the error of a command. It finds a
// secret unchanged and in the forms that programs print: base64, hex, and escapes of URLs, JSON, YAML, Go and
// shells. The zero value knows no secrets. A Redactor is immutable, so goroutines may share it.
type Redactor struct{ *patterns }

type patterns struct {
	all []pattern
	// index contains the patterns by their first minRedacted bytes. filter has a bit for each pair of first
	// bytes.
	index  map[string][]int
	filter [1 << 16 / 64]uint64
	// grams contains the parts of the patterns.
	grams grams
}

func (p *patterns) mayBegin(text string) bool {
	i := int(text[0])<<8 | int(text[1])

	return p.filter[i/64]>>(i%64)&1 != 0
}

// New returns a redactor of secrets. It also searches for each line of a value of several lines, because
// tools print single lines. It ignores values of fewer than four bytes and forms of fewer than six.
func New(secrets ...model.Secret) Redactor {
	p := &patterns{index: map[string][]int{}}
	known := map[string]bool{}
	add := func(value string) {
		if len(value) < minRedacted || known[value] {
			return
		}
		known[value] = true
		for _, form := range formsOf(value) {
			key := form.text[:minRedacted]
			p.index[key] = append(p.index[key], len(p.all))
			i := int(key[0])<<8 | int(key[1])
			p.filter[i/64] |= 1 << (i % 64)
			p.all = append(p.all, form)
		}
	}
	for _, s := range secrets {
		if s.IsDerived() {
			continue
		}
		add(s.Reveal())
		add(strings.TrimSpace(s.Reveal()))
		for line := range strings.Lines(s.Reveal()) {
			add(strings.TrimSpace(line))
		}
	}
	if len(p.all) == 0 {
		return Redactor{}
	}
	p.grams = newGrams(p.all)

	return Redactor{p}
}

// Redact returns s with every known value replaced by model.Redacted. In a text of several lines it also
// replaces parts of values that programs wrap.
func (r Redactor) Redact(s string) string { return r.redact(s, false) }

// RedactLine redacts one line of a longer text, such as the output of a command.
func (r Redactor) RedactLine(s string) string { return r.redact(s, true) }

func (r Redactor) redact(s string, line bool) string {
	if r.patterns == nil || len(s) < minRedacted {
		return s
	}
	var found []span
	r.search(view{text: s}, line, maxEscapes, &found)
	if len(found) == 0 {
		return s
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	end := int32(0)
	for i, f := range found {
		if i == 0 || f.from > end {
			out.WriteString(s[end:f.from])
			out.WriteString(model.Redacted)
		}
		end = max(end, f.to)
	}
	out.WriteString(s[end:])

	return out.String()
}

// maxEscapes limits the nesting of escapes and encodings. JSON within JSON is nested twice.
// Base64 of base64 is nested once, because the patterns contain the base64 form.
const maxEscapes = 2

// search finds patterns in a view of a text and in the meaning of its escapes.
func (p *patterns) search(v view, line bool, escapes int, found *[]span) {
	lines := line || strings.Contains(v.text, "\n")
	p.scan(v, lines, found)
	p.scanLines(v, lines, found)
	if escapes == 0 {
		return
	}
	for _, read := range []func(string) (string, []span){unwrapped, unescaped, unpercented, uncoloured, decoded} {
		if text, at := read(v.text); at != nil {
			p.search(v.within(text, at), line, escapes-1, found)
		}
	}
}

func (p *patterns) scan(v view, lines bool, found *[]span) {
	begins, ends := cuts(v.text)
	for at := 0; at+minRedacted <= len(v.text); at++ {
		if !p.mayBegin(v.text[at:]) {
			continue
		}
		for _, i := range p.index[v.text[at:at+minRedacted]] {
			f := p.all[i]
			n := f.matches(v.text[at:], nextCut(ends, at)-at, minRedacted)
			if n == 0 && f.countsIn(lines) {
				n = f.headOf(v.text[at:])
			}
			if n > 0 {
				*found = append(*found, v.origin(f.extent(v.text, at, at+n)))
			}
		}
	}
	for _, at := range begins {
		rest := v.text[at:]
		for _, f := range p.all {
			if n := f.endsIn(rest, nextCut(ends, at)-at, minRedacted); n > 0 {
				*found = append(*found, v.origin(f.extent(v.text, at, at+n)))
			}
		}
	}
}

// cutMark marks the position where a text was cut.
const cutMark = "…"

// blank is the text that may stand between the end of a text and the cut. A divided character belongs to the
// cut.
const blank = " \t\r\n\ufffd"

// cuts returns the starts of the parts after a cut and the ends of the parts before a cut.
func cuts(text string) (begins, ends []int) {
	for from := 0; ; {
		i := strings.Index(text[from:], cutMark)
		if i < 0 {
			return begins, ends
		}
		before, after := text[:from+i], text[from+i+len(cutMark):]
		ends = append(ends, len(strings.TrimRight(before, blank)))
		begins = append(begins, len(text)-len(strings.TrimLeft(after, blank)))
		from += i + len(cutMark)
	}
}

// nextCut returns the first end after a position, or a negative number.
func nextCut(ends []int, at int) int {
	i, _ := slices.BinarySearch(ends, at)
	if i == len(ends) {
		return -1
	}

	return ends[i]
}

// minForm is the shortest searched form of a secret other than the secret itself.
const minForm = 6

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
