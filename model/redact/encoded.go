package redact

// minRun is the length of the shortest run that muster decodes. A shorter run cannot contain a secret that is
// encoded twice.
const minRun = 10

// alphabet is an encoding that packs bytes into characters.
type alphabet struct {
	bits  int
	value func(c byte) int
}

// alphabets returns hex, base32 and base64.
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

// uncoloured removes the sequences that colour a terminal.
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
