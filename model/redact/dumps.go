package redact

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// minGroups is how many groups of a dump must follow one another, where no offset
// begins the line.
const minGroups = 4

// dump is a way to print bytes in groups: od, xxd, hexdump, and lists of numbers.
type dump struct {
	// between are the characters between groups.
	between string
	// cell is the width of a group whose blanks may stand for a blank, 0 where none does.
	cell int
	// group returns the bytes of a group, none for what is no group.
	group func(text string) []byte
}

// dumps returns the ways to read a text that has groups, none for any other.
func dumps(text string) []dump {
	if !hasGroups(text) {
		return nil
	}
	const between = " \t:,-+[](){}'\""

	return []dump{
		{between: between, group: hexGroup},
		{between: between, group: func(g string) []byte { return swapped(g, 4, 16) }},
		{between: between, group: func(g string) []byte { return swapped(g, 6, 8) }},
		{between: between, group: func(g string) []byte { return number(g, 3, 3, 8) }},
		{between: between, group: func(g string) []byte { return number(g, 1, 3, 10) }},
		{between: " \t", cell: 4, group: character},
	}
}

// hasGroups reports whether short words follow one another that may be a dump.
func hasGroups(text string) bool {
	const longest = 16
	groups, length := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c > '-' && c != ':' && c != '[' && c != ']' && c != '{' && c != '}':
			if length++; length > 2 && !isHex(c) && c != 'x' {
				length = longest + 1
			}
			continue
		case length > longest:
			groups = 0
		case length > 0:
			groups++
		}
		if length = 0; groups >= minGroups {
			return true
		}
	}

	return length > 0 && length <= longest && groups+1 >= minGroups
}

func isHex(c byte) bool { return hexValue(c) >= 0 }

// hexGroup reads bytes in the order of the text: 68, 0x68, 6875.
func hexGroup(group string) []byte {
	group = strings.TrimPrefix(group, "0x")
	if len(group) > 16 {
		return nil
	}
	out, err := hex.DecodeString(group)
	if err != nil {
		return nil
	}

	return out
}

// swapped reads a word of two bytes, the last one first, as od and hexdump print
// without options.
func swapped(group string, digits, base int) []byte {
	if len(group) != digits {
		return nil
	}
	word, err := strconv.ParseUint(group, base, 16)
	if err != nil {
		return nil
	}

	return []byte{byte(word), byte(word >> 8)}
}

func number(group string, least, most, base int) []byte {
	if len(group) < least || len(group) > most {
		return nil
	}
	n, err := strconv.ParseUint(group, base, 8)
	if err != nil {
		return nil
	}

	return []byte{byte(n)}
}

// character reads a character as od -c prints it.
func character(group string) []byte {
	if r, n := utf8.DecodeRuneInString(group); n == len(group) && r != utf8.RuneError {
		return []byte(group)
	}
	if group == `\0` {
		return []byte{0}
	}
	if text, n := backslash(group); group[0] == '\\' && n == len(group) && n == 2 {
		return []byte(text)
	}

	return number(group, 3, 3, 8)
}

// undumped reads what a dump means, its lines joined. What follows the bytes of a line with
// an offset shows them too, and belongs to each of them.
func (d dump) undumped(text string) (string, []span) {
	r := dumped{line: 1}
	for from := 0; from < len(text); {
		end := from + strings.IndexByte(text[from:], '\n')
		if end < from {
			end = len(text)
		}
		r.line++
		d.read(&r, text, from, end)
		from = end + 1
	}
	if len(r.text) == 0 {
		return "", nil
	}

	return string(r.text), r.at
}

// dumped is what dumps mean.
type dumped struct {
	reading
	// line is the number of the line at work, last that of the last dump.
	line, last int
}

// sequence is groups that follow one another in a line.
type sequence struct {
	reading
	groups int
	// offset reports that an offset is before them. They begin after it, and after is the
	// end of the last one.
	offset       bool
	begin, after int
}

// read reads the dumps in one line.
func (d dump) read(r *dumped, text string, from, end int) {
	var s sequence
	for at := from; at < end; {
		if strings.IndexByte(d.between, text[at]) >= 0 || text[at] == '\r' {
			at++
			continue
		}
		if n := offset(text[at:end]); n > 0 {
			column := s.flush(r, text[:end])
			if at < column {
				at = column
				continue
			}
			at += n
			s = sequence{offset: true, begin: at, after: at}
			continue
		}
		n := strings.IndexAny(text[at:end], d.between+"\r")
		if n < 0 {
			n = end - at
		}
		if bytes := d.group(text[at : at+n]); bytes != nil && !s.isOver(text, at) {
			s.add(d, bytes, at, at+n)
		} else {
			s.flush(r, text[:end])
		}
		at += n
	}
	s.flush(r, text[:end])
}

// isOver reports whether a place is in the column of characters that xxd prints after two
// blanks.
func (s *sequence) isOver(text string, at int) bool {
	return s.offset && s.groups > 0 && text[s.begin] == ':' && at-s.after > 1
}

// add adds the bytes of a group.
func (s *sequence) add(d dump, bytes []byte, from, to int) {
	if d.cell > 0 && (s.offset || s.groups > 0) {
		s.reading.add(strings.Repeat(" ", (from-s.after)/d.cell), s.after, from)
	}
	s.groups, s.after = s.groups+1, to
	s.reading.add(string(bytes), from, to)
}

// flush hands a sequence on that is long enough, and begins another one. A dump that goes
// on in the next line is not interrupted. It returns where the column of characters ends.
func (s *sequence) flush(r *dumped, line string) (column int) {
	goesOn := r.last == r.line-1
	if s.groups >= minGroups || s.groups > 0 && (s.offset || goesOn) {
		if s.offset {
			column = s.takeColumn(line)
		}
		if len(r.text) > 0 && !goesOn {
			r.reading.add("\n", s.begin, s.begin+1)
		}
		r.last = r.line
		r.text, r.at = append(r.text, s.text...), append(r.at, s.at...)
	}
	*s = sequence{}

	return column
}

// takeColumn has all bytes stand for the whole line with the column of characters that
// follows them, and returns its end.
func (s *sequence) takeColumn(line string) int {
	const marks = 2
	column := len(line) - len(strings.TrimLeft(line[s.after:], " "))
	end := min(column+len(s.text)+marks, len(line))
	for i := range s.at {
		s.at[i] = span{int32(s.begin), int32(end)}
	}

	return end
}

// offset returns the length of the offset that a text begins with, 0 for none.
func offset(text string) int {
	n := 0
	for n < len(text) && isHex(text[n]) {
		n++
	}
	if rest := text[n:]; n == 7 && strings.HasPrefix(rest, " ") || n == 8 && (strings.HasPrefix(rest, ": ") || strings.HasPrefix(rest, "  ")) {
		return n
	}

	return 0
}
