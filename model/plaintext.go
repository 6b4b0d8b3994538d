package model

import (
	"bytes"
	"hash/maphash"
	"time"
)

// plainText reads JSON that is as json.Marshal writes it: its members in their order, without spaces. Once it is off,
// it met anything else, and what it returned counts for nothing: the library reads that. So it is no decoder of its
// own, and what it reads is what the library makes of it.
type plainText struct {
	rest  []byte
	off   bool
	texts *texts
}

// texts keeps texts that documents have in common, so that each is there once. Few of any are kept, and none for its
// sake alone: nodes choose them.
type texts struct {
	seed  maphash.Seed
	known [512]string
}

// maxShared is how many bytes a text has at most that is kept.
const maxShared = 256

// share returns a text that is known, where it is.
func (t *texts) share(text []byte) (known string, place *string) {
	if t == nil || len(text) > maxShared {
		return "", nil
	}
	place = &t.known[maphash.Bytes(t.seed, text)%uint64(len(t.known))]
	if *place != string(text) {
		return "", place
	}

	return *place, place
}

// leave leaves the document to the library.
func (p *plainText) leave() { p.off, p.rest = true, nil }

// isDone reports whether all is read.
func (p *plainText) isDone() bool { return !p.off && len(p.rest) == 0 }

// has reports whether something follows, and skips it then.
func (p *plainText) has(text string) bool {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		return false
	}
	p.rest = p.rest[len(text):]

	return true
}

// must skips what must follow.
func (p *plainText) must(text string) {
	if !p.has(text) {
		p.leave()
	}
}

// goesOn reports whether another element of a list or a mapping follows; it skips the comma before it, or the end.
func (p *plainText) goesOn(first bool, end string) bool {
	switch {
	case p.off || p.has(end):
		return false
	case first:
		return true
	default:
		p.must(",")
		return !p.off
	}
}

// quoted returns what is between two quotes, as it is written.
func (p *plainText) quoted() []byte {
	p.must(`"`)
	end := bytes.IndexByte(p.rest, '"')
	if end < 0 {
		p.leave()
		return nil
	}
	out := p.rest[:end]
	p.rest = p.rest[end+1:]

	return out
}

// text reads a text.
func (p *plainText) text() string {
	before := p.rest
	text := p.quoted()
	if isPlain(text) {
		return string(text)
	}
	p.rest = before
	var out string
	p.other(&out)

	return out
}

// shared reads a text that other documents may have, too.
func (p *plainText) shared() string {
	before := p.rest
	text := p.quoted()
	known, place := p.texts.share(text)
	switch {
	case known != "":
		return known
	case place == nil || !isPlain(text):
		p.rest = before
		return p.text()
	default:
		*place = string(text)
		return *place
	}
}

// isPlain reports whether a text is as it is written: printable ASCII without escapes.
func isPlain(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b == '\\' || b >= 0x80 {
			return false
		}
	}

	return true
}

// formed returns what is between two quotes, for a text with a form of its own.
func (p *plainText) formed() []byte {
	text := p.quoted()
	if !isPlain(text) {
		p.leave()
	}

	return text
}

// time reads a time.
func (p *plainText) time() (t time.Time) {
	if t.UnmarshalText(p.formed()) != nil {
		p.leave()
	}

	return t
}

// duration reads a duration.
func (p *plainText) duration() (d Duration) {
	if d.UnmarshalText(p.formed()) != nil {
		p.leave()
	}

	return d
}

// offset reads a duration with a sign.
func (p *plainText) offset() (o Offset) {
	if o.UnmarshalText(p.formed()) != nil {
		p.leave()
	}

	return o
}

// number reads a whole number that is not negative, of so many digits at most.
func (p *plainText) number(most int) (n uint64) {
	digits := 0
	for ; digits < len(p.rest) && digits <= most && p.rest[digits] >= '0' && p.rest[digits] <= '9'; digits++ {
		n = n*10 + uint64(p.rest[digits]-'0')
	}
	if digits == 0 || digits > most || digits > 1 && p.rest[0] == '0' {
		p.leave()
		return 0
	}
	p.rest = p.rest[digits:]

	return n
}

// Digits that an int has on every machine, and an uint64.
const (
	intDigits  = 9
	longDigits = 18
)

// int reads a count.
func (p *plainText) int() int { return int(p.number(intDigits)) }

// list reads texts.
func (p *plainText) list() []string {
	if p.has("null") {
		return nil
	}
	p.must("[")
	out := []string{}
	for first := true; p.goesOn(first, "]"); first = false {
		out = append(out, p.shared())
	}

	return out
}

// mapping calls member for each name, whose value it reads. It returns how many there are.
func (p *plainText) mapping(member func(name string)) (count int) {
	p.must("{")
	for ; p.goesOn(count == 0, "}"); count++ {
		name := p.shared()
		p.must(":")
		member(name)
	}

	return count
}

// other has the library read the text, list or mapping that follows.
func (p *plainText) other(into any) {
	depth, end := 0, 0
	for end < len(p.rest) {
		switch p.rest[end] {
		case '"':
			end += lenQuoted(p.rest[end:])
		case '[', '{':
			depth++
			end++
		case ']', '}':
			depth--
			end++
		default:
			end++
		}
		if depth <= 0 {
			break
		}
	}
	end = min(end, len(p.rest))
	if unmarshal(p.rest[:end], into) != nil {
		p.leave()
		return
	}
	p.rest = p.rest[end:]
}

// lenQuoted returns how long a quoted text is, with its quotes.
func lenQuoted(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}

	return len(text)
}
