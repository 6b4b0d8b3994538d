package redact

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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

func (r *reading) copy(text string, from, to int) {
	r.text = append(r.text, text[from:to]...)
	for i := from; i < to; i++ {
		r.at = append(r.at, span{int32(i), int32(i + 1)})
	}
}

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

// minRun is the length of the shortest run that muster decodes. A shorter run cannot contain a secret that is
// encoded twice.
const minRun = 10

// alphabet is an encoding that packs bytes into characters.
type alphabet struct {
	bits  int
	value func(c byte) int
}

func alphabets() []alphabet {
	return []alphabet{{4, hexValue}, {5, base32Value}, {6, base64Value}}
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}

func base32Value(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c - 'a')
	case c >= '2' && c <= '7':
		return int(c-'2') + 26
	default:
		return -1
	}
}

func base64Value(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	default:
		return -1
	}
}

// decoded decodes the runs of hex, base32 and base64, one per line. The position of the first byte in a run
// is unknown, so it decodes from each possible position.
func decoded(text string) (string, []span) {
	var r reading
	runs(text, 0, len(text), isBase64, func(from, end int) {
		// Base64 contains the characters of the other alphabets.
		for _, a := range alphabets() {
			runs(text, from, end, func(c byte) bool { return a.value(c) >= 0 }, func(from, end int) {
				for first := range places(a.bits) {
					a.decode(&r, text, from+first, end)
				}
			})
		}
	})
	if len(r.text) == 0 {
		return "", nil
	}

	return string(r.text), r.at
}

// runs calls f with the runs of characters in a part of a text that are long enough.
func runs(text string, from, end int, is func(c byte) bool, f func(from, end int)) {
	for from < end {
		to := from
		for to < end && is(text[to]) {
			to++
		}
		if to-from >= minRun {
			f(from, to)
		}
		from = to + 1
	}
}

// places returns the number of characters after which the bits start at a byte again.
func places(bits int) int {
	n := 1
	for n*bits%8 != 0 {
		n++
	}

	return n
}

// decode adds the printable texts of a run. It ignores a run that does not decode to text.
func (a alphabet) decode(r *reading, text string, from, end int) {
	begin := len(r.text)
	keep := func(at int) {
		if len(r.text)-begin < minForm {
			r.text, r.at = r.text[:begin], r.at[:begin]
			return
		}
		r.add("\n", at-1, at)
		begin = len(r.text)
	}
	held, bits, since := 0, 0, from
	for at := from; at < end; at++ {
		held, bits = held<<a.bits|a.value(text[at]), bits+a.bits
		if bits < 8 {
			continue
		}
		bits -= 8
		c := byte(held >> bits)
		held &= 1<<bits - 1
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' || c > '~' {
			keep(at)
		} else {
			r.text = append(r.text, c)
			r.at = append(r.at, span{int32(since), int32(at + 1)})
		}
		since = at
		if bits == 0 {
			since = at + 1
		}
	}
	keep(end)
}

func uncoloured(text string) (string, []span) {
	return read(text, "\x1b", func(s string) (string, int) {
		if len(s) < 3 || s[1] != '[' {
			return "", 0
		}
		n := 2
		for n < len(s) && s[n] >= ' ' && s[n] <= '?' {
			n++
		}
		if n == len(s) {
			return "", 0
		}

		return "", n + 1
	})
}

const (
	// minWrapped and minEncoded are the shortest searched parts of a form in wrapped lines. Base64 is rarely
	// ordinary text, so a shorter part is enough.
	minWrapped = 12
	minEncoded = gram
	// gram is the number of bytes in an entry of the index of parts.
	gram = 8
	// maxWrapped limits the forms that are searched in parts. maxGrams limits their index, in bits.
	maxWrapped = 256 << 10
	maxGrams   = 1 << 24
)

// grams has a bit for each gram of the forms that are longer than their shortest part.
type grams struct {
	set   []uint64
	shift int
}

func newGrams(all []pattern) grams {
	const bitsOfGram = 16
	total := 0
	for _, p := range all {
		if p.isWrapped() {
			total += len(p.text)
		}
	}
	if total == 0 {
		return grams{}
	}
	size := min(max(bits.Len(uint(total*bitsOfGram)), 6), bits.Len(maxGrams-1))
	g := grams{make([]uint64, 1<<size/64), 64 - size}
	for _, p := range all {
		if !p.isWrapped() {
			continue
		}
		for at := 0; at+gram <= len(p.text); at++ {
			i := g.place(p.text[at:])
			g.set[i/64] |= 1 << (i % 64)
		}
	}

	return g
}

func (g grams) place(text string) uint64 {
	const odd = 0x9E3779B97F4A7C15

	return binary.LittleEndian.Uint64([]byte(text[:gram])) * odd >> g.shift
}

// mayHold reports whether a form may contain the first bytes of a text.
func (g grams) mayHold(text string) bool {
	if len(g.set) == 0 || len(text) < gram {
		return false
	}
	i := g.place(text)

	return g.set[i/64]>>(i%64)&1 != 0
}

// least is the shortest part of the pattern that matters at the ends of lines.
func (p pattern) least() int {
	if p.bits {
		return minEncoded
	}

	return minWrapped
}

func (p pattern) isWrapped() bool { return len(p.text) > p.least() && len(p.text) <= maxWrapped }

// countsIn reports whether parts of the pattern are searched. In a single line only parts of base64 are,
// because a part of another form is equally likely a host or a path.
func (p pattern) countsIn(lines bool) bool { return (lines || p.bits) && p.isWrapped() }

// headOf returns the length of the beginning of the pattern in a text, up to the end of the line. It reads at
// most the length of the pattern.
func (p pattern) headOf(text string) int {
	text = text[:min(len(text), len(p.text)+1)]

	return p.matches(text, lineEnd(text, 0), p.least())
}

// scanLines finds the lines that begin with a part of a pattern, as in wrapped output. The output may follow
// a colon.
func (p *patterns) scanLines(v view, lines bool, found *[]span) {
	for from := 0; from < len(v.text); {
		end := lineEnd(v.text, from)
		for at := from; at >= 0 && at < end; at = afterColon(v.text, at, end) {
			at += len(v.text[at:end]) - len(strings.TrimLeft(v.text[at:end], blank))
			rest := v.text[at:]
			if !p.grams.mayHold(rest) {
				continue
			}
			for _, f := range p.all {
				if !f.countsIn(lines) {
					continue
				}
				if n := f.endsIn(rest, end-at, f.least()); n > 0 {
					_, to := f.extent(v.text, at, at+n)
					*found = append(*found, v.origin(at, to))
				}
			}
		}
		next := strings.IndexByte(v.text[end:], '\n')
		if next < 0 {
			return
		}
		from = end + next + 1
	}
}

// lineEnd returns the end of a line without trailing blanks.
func lineEnd(text string, from int) int {
	line := text[from:]
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}

	return from + len(strings.TrimRight(line, blank))
}

// afterColon returns the next position in a line after a colon and a space, or -1.
func afterColon(text string, from, end int) int {
	const colon = ": "
	i := strings.Index(text[from:end], colon)
	if i < 0 {
		return -1
	}

	return from + i + len(colon)
}
