package redact

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

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

// isWrapped reports whether parts of the pattern are searched.
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
