package nodes

import (
	"encoding/json"
	"time"
)

// reader reads JSON as encoding/json writes it, several times as fast as that reads it. Once it is
// off, it met something that it leaves to encoding/json, and what it returned counts for nothing.
type reader struct {
	data []byte
	at   int
	off  bool
	// shared are texts that many states have in common, each kept once.
	shared map[string]string
}

// Bounds of what is shared: nodes choose it.
const (
	maxShared     = 20_000
	maxSharedText = 256
)

// leave has encoding/json read the document.
func (r *reader) leave() { r.off, r.at = true, len(r.data) }

// space skips white space.
func (r *reader) space() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// next skips white space and returns the byte behind it, 0 at the end.
func (r *reader) next() byte {
	r.space()
	if r.at >= len(r.data) {
		return 0
	}

	return r.data[r.at]
}

// take skips a byte that must be there.
func (r *reader) take(b byte) {
	if r.next() != b {
		r.leave()
		return
	}
	r.at++
}

// ends reports whether a list or a mapping ends, and skips the comma where it goes on.
func (r *reader) ends(with byte, first *bool) bool {
	switch b := r.next(); {
	case r.off:
		return true
	case b == with:
		r.at++
		return true
	case *first:
		*first = false
		return false
	case b == ',':
		r.at++
		return false
	default:
		r.leave()
		return true
	}
}

// object calls member for each member of a mapping, whose value it reads. A name that is there
// twice, as seen by its bit, is left to encoding/json.
func (r *reader) object(member func(name []byte) (bit uint32)) {
	r.take('{')
	var seen uint32
	for first := true; !r.ends('}', &first); {
		name := r.plain()
		r.take(':')
		if r.off {
			return
		}
		bit := member(name)
		if bit == 0 || seen&bit != 0 {
			r.leave()
			return
		}
		seen |= bit
	}
}

// plain reads a text of printable ASCII without escapes.
func (r *reader) plain() []byte {
	r.take('"')
	from := r.at
	for i := from; i < len(r.data); i++ {
		switch b := r.data[i]; {
		case b == '"':
			r.at = i + 1
			return r.data[from:i]
		case b < ' ' || b == '\\' || b >= 0x80:
			r.leave()
			return nil
		}
	}
	r.leave()

	return nil
}

// text reads any text.
func (r *reader) text() string {
	if r.next() != '"' {
		r.leave()
		return ""
	}
	from := r.at
	for i := from + 1; i < len(r.data); i++ {
		switch b := r.data[i]; {
		case b == '"':
			r.at = i + 1
			return r.share(r.data[from+1 : i])
		case b < ' ' || b == '\\' || b >= 0x80:
			var out string
			r.rest(&out)
			return out
		}
	}
	r.leave()

	return ""
}

// share returns a text, where it can the one that is kept already.
func (r *reader) share(text []byte) string {
	if len(text) > maxSharedText {
		return string(text)
	}
	if known, is := r.shared[string(text)]; is {
		return known
	}
	out := string(text)
	if len(r.shared) < maxShared {
		r.shared[out] = out
	}

	return out
}

// number reads a whole number of at most 18 digits.
func (r *reader) number() int64 {
	negative := r.next() == '-'
	if negative {
		r.at++
	}
	from, n := r.at, int64(0)
	for r.at < len(r.data) && r.data[r.at] >= '0' && r.data[r.at] <= '9' {
		n = n*10 + int64(r.data[r.at]-'0')
		r.at++
	}
	if digits := r.at - from; digits == 0 || digits > 18 || digits > 1 && r.data[from] == '0' {
		r.leave()
	}
	if r.at < len(r.data) && (r.data[r.at] == '.' || r.data[r.at] == 'e' || r.data[r.at] == 'E') {
		r.leave()
	}
	if negative {
		return -n
	}

	return n
}

// count reads a number that is not negative.
func (r *reader) count() uint64 {
	if r.next() == '-' {
		r.leave()
	}

	return uint64(r.number())
}

// time reads a time.
func (r *reader) time() (t time.Time) {
	from := r.at
	if text := r.plain(); !r.off && t.UnmarshalText(text) != nil {
		r.at = from
		r.leave()
	}

	return t
}

// rest has encoding/json read the value that follows.
func (r *reader) rest(into any) {
	r.space()
	from, depth := r.at, 0
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case '"':
			r.skipText()
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if r.at++; depth == 0 && isEnd(r.data, r.at) {
			break
		}
	}
	if r.off || json.Unmarshal(r.data[from:min(r.at, len(r.data))], into) != nil {
		r.leave()
	}
}

// skipText skips a text but for its last quote.
func (r *reader) skipText() {
	for r.at++; r.at < len(r.data) && r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			r.at++
		}
	}
}

// isEnd reports whether a value ends before a place.
func isEnd(data []byte, at int) bool {
	if at >= len(data) {
		return true
	}
	switch data[at] {
	case ',', '}', ']', ' ', '\t', '\n', '\r', ':':
		return true
	default:
		return false
	}
}
