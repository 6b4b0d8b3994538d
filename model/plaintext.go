package model

import (
	"bytes"
	"hash/maphash"
	"time"
)

// plainText reads JSON that is as json.Marshal writes it: its members in their order, without spaces. It fails
// at anything else, and what it returned counts for nothing then: the library decodes the document. So it is no decoder
// of its own, and what it reads is what the library makes of it.
type plainText struct {
	rest   []byte
	failed bool
	texts  *texts
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

// fail ends reading: the library decodes the document.
func (p *plainText) fail() { p.failed, p.rest = true, nil }

// isDone reports whether all is read.
func (p *plainText) isDone() bool { return !p.failed && len(p.rest) == 0 }

// accept skips a text that follows, and reports whether it did.
func (p *plainText) accept(text string) bool {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		return false
	}
	p.rest = p.rest[len(text):]

	return true
}

// expect skips a text, and fails where it does not follow.
func (p *plainText) expect(text string) {
	if !p.accept(text) {
		p.fail()
	}
}

// more reports whether another element of a list or a mapping follows; it skips the comma before it, or the end.
func (p *plainText) more(first bool, end string) bool {
	switch {
	case p.failed || p.accept(end):
		return false
	case first:
		return true
	default:
		p.expect(",")
		return !p.failed
	}
}

// quoted returns what is between two quotes, as it is written.
func (p *plainText) quoted() []byte {
	p.expect(`"`)
	end := bytes.IndexByte(p.rest, '"')
	if end < 0 {
		p.fail()
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
	p.decode(&out)

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
		p.fail()
	}

	return text
}

// time reads a time.
func (p *plainText) time() (t time.Time) {
	if t.UnmarshalText(p.formed()) != nil {
		p.fail()
	}

	return t
}

// duration reads a duration.
func (p *plainText) duration() (d Duration) {
	if d.UnmarshalText(p.formed()) != nil {
		p.fail()
	}

	return d
}

// offset reads a duration with a sign.
func (p *plainText) offset() (o Offset) {
	if o.UnmarshalText(p.formed()) != nil {
		p.fail()
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
		p.fail()
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
	if p.accept("null") {
		return nil
	}
	p.expect("[")
	out := []string{}
	for first := true; p.more(first, "]"); first = false {
		out = append(out, p.shared())
	}

	return out
}

// mapping calls member for each name, whose value it reads. It returns how many there are.
func (p *plainText) mapping(member func(name string)) (count int) {
	p.expect("{")
	for ; p.more(count == 0, "}"); count++ {
		name := p.shared()
		p.expect(":")
		member(name)
	}

	return count
}

// decode has the library decode the text, list or mapping that follows.
func (p *plainText) decode(into any) {
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
		p.fail()
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
