package edits

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

const jsonBlanks = " \t\r\n"

// member is an entry of an object by offsets: of its key, the end of the key, its value and the end of the value.
type member struct {
	key                            string
	keyBegin, keyEnd, begin, after int
}

// object is an object by offsets: its brace, and the end of its closing brace.
type object struct {
	begin, after int
	members      []member
}

func (o object) find(key string) (int, bool) {
	for i, m := range o.members {
		if m.key == key {
			return i, true
		}
	}

	return 0, false
}

// jsonScanner finds the offsets of values in a valid document.
type jsonScanner struct {
	text string
	at   int
	// repeated is the offset of the first key that occurs twice in an object, or -1.
	repeated int
}

func (s *jsonScanner) space() {
	for s.at < len(s.text) && strings.IndexByte(jsonBlanks, s.text[s.at]) >= 0 {
		s.at++
	}
}

// value moves past a value.
func (s *jsonScanner) value() {
	s.space()
	switch s.text[s.at] {
	case '{':
		s.object()
	case '[':
		s.at++
		for s.space(); s.text[s.at] != ']'; s.space() {
			if s.text[s.at] == ',' {
				s.at++
			}
			s.value()
		}
		s.at++
	case '"':
		s.quoted()
	default:
		for s.at < len(s.text) && strings.IndexByte(jsonBlanks+",]}", s.text[s.at]) < 0 {
			s.at++
		}
	}
}

// quoted moves past a text.
func (s *jsonScanner) quoted() {
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// object moves past an object and returns it.
func (s *jsonScanner) object() object {
	o := object{begin: s.at}
	seen := map[string]bool{}
	s.at++
	for s.space(); s.text[s.at] != '}'; s.space() {
		if s.text[s.at] == ',' {
			s.at++
			s.space()
		}
		m := member{keyBegin: s.at}
		s.quoted()
		m.keyEnd = s.at
		_ = json.Unmarshal([]byte(s.text[m.keyBegin:m.keyEnd]), &m.key)
		if seen[m.key] && s.repeated < 0 {
			s.repeated = m.keyBegin
		}
		seen[m.key] = true
		s.space()
		s.at++ // the colon
		s.space()
		m.begin = s.at
		s.value()
		m.after = s.at
		o.members = append(o.members, m)
	}
	s.at++
	o.after = s.at

	return o
}

// objectAt returns the object at an offset of a valid document.
func objectAt(text string, at int) object {
	s := jsonScanner{text: text, at: at, repeated: -1}

	return s.object()
}

// jsonDocument is a document with the style of its lines.
type jsonDocument struct {
	text string
	root object
	// unit is the indentation of a level, newline the line end. A document on one line has none.
	unit, newline string
	// colon is the text between a key and its value.
	colon string
}

const emptyJSON = "{}\n"

// readJSON reads a document. A file without content is an empty object.
func readJSON(t Text) (jsonDocument, error) {
	d := jsonDocument{text: Text{lines: t.lines}.String()}
	if strings.Trim(d.text, jsonBlanks) == "" {
		d.text = emptyJSON
	}
	if err := json.Unmarshal([]byte(d.text), &json.RawMessage{}); err != nil {
		return d, invalidJSON(d.text, err)
	}
	s := jsonScanner{text: d.text, repeated: -1}
	s.space()
	if d.text[s.at] != '{' {
		return d, fmt.Errorf("the document is %s, not an object", kindOf(d.text[s.at]))
	}
	d.root = s.object()
	if s.repeated >= 0 {
		return d, fmt.Errorf("a key occurs twice, on line %d: remove one of them", lineAt(d.text, s.repeated))
	}
	d.style()

	return d, nil
}

func lineAt(text string, offset int) int { return strings.Count(text[:offset], "\n") + 1 }

// invalidJSON returns the error of a document that is no JSON.
func invalidJSON(text string, err error) error {
	syntax := &json.SyntaxError{}
	if !errors.As(err, &syntax) {
		return err
	}
	at := min(max(int(syntax.Offset)-1, 0), len(text))
	if strings.HasPrefix(text[at:], "/") {
		return fmt.Errorf("is not JSON on line %d: files with comments are not edited", lineAt(text, at))
	}

	return fmt.Errorf("is not JSON on line %d: %w", lineAt(text, at), syntax)
}

// kindOf returns the kind of a value by its first byte.
func kindOf(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

func (d *jsonDocument) style() {
	d.unit, d.newline, d.colon = "  ", "\n", ": "
	whole := d.text[d.root.begin:d.root.after]
	if strings.Contains(d.text, "\r\n") {
		d.newline = "\r\n"
	}
	if len(d.root.members) == 0 {
		return
	}
	first := d.root.members[0]
	d.colon = d.text[first.keyEnd:first.begin]
	if !strings.Contains(whole, "\n") {
		d.unit, d.newline = "", ""
		return
	}
	before := d.text[d.root.begin+1 : first.keyBegin]
	if at := strings.LastIndexByte(before, '\n'); at >= 0 && before[at+1:] != "" {
		d.unit = before[at+1:]
	}
}

// indentAt returns the blanks at the beginning of the line of an offset.
func (d *jsonDocument) indentAt(offset int) string {
	text := d.text[strings.LastIndexByte(d.text[:offset], '\n')+1:]

	return text[:leading(text)]
}

// format returns a value for a line with an indentation.
func (d *jsonDocument) format(raw, indent string) string {
	if d.newline == "" {
		return d.inline(raw)
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(raw), indent, d.unit) != nil {
		return raw
	}

	return strings.ReplaceAll(b.String(), "\n", d.newline)
}

// inline returns a value on one line, with blanks if the document has some.
func (d *jsonDocument) inline(raw string) string {
	if !strings.HasSuffix(d.colon, " ") {
		return raw
	}
	var b strings.Builder
	for i, inText := 0, false; i < len(raw); i++ {
		c := raw[i]
		b.WriteByte(c)
		switch {
		case c == '\\' && inText:
			i++
			b.WriteByte(raw[i])
		case c == '"':
			inText = !inText
		case !inText && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}

	return b.String()
}

// insert returns the text with another member of an object.
func (d *jsonDocument) insert(o object, key, raw string) string {
	name := quote(key)
	if len(o.members) == 0 {
		indent := d.indentAt(o.begin)
		lead, end := d.newline+indent+d.unit, d.newline+indent
		if d.newline == "" {
			lead, end = "", ""
		}
		return d.text[:o.begin] + "{" + lead + name + d.colon + d.format(raw, indent+d.unit) + end + "}" + d.text[o.after:]
	}
	last := o.members[len(o.members)-1]
	from := o.begin + 1
	if n := len(o.members); n > 1 {
		from = o.members[n-2].after
	}
	lead := strings.TrimLeft(strings.TrimLeft(d.text[from:last.keyBegin], jsonBlanks), ",")
	if len(o.members) == 1 {
		lead = d.text[from:last.keyBegin]
	}
	colon := d.text[last.keyEnd:last.begin]
	if lead == "" && strings.HasSuffix(colon, " ") {
		lead = " "
	}
	value := d.inline(raw)
	if at := strings.LastIndexByte(lead, '\n'); at >= 0 {
		value = d.format(raw, lead[at+1:])
	}

	return d.text[:last.after] + "," + lead + name + colon + value + d.text[last.after:]
}

// replace returns the text with another value of a member.
func (d *jsonDocument) replace(m member, raw string) string {
	value := d.format(raw, d.indentAt(m.keyBegin))
	old := d.text[m.begin:m.after]
	if (old[0] == '[' || old[0] == '{') && len(strings.Trim(old, "[]{}"+jsonBlanks)) > 0 && !strings.Contains(old, "\n") {
		value = d.inline(raw)
	}

	return d.text[:m.begin] + value + d.text[m.after:]
}

// remove returns the text without member i of an object.
func (d *jsonDocument) remove(o object, i int) string {
	m := o.members[i]
	switch {
	case len(o.members) == 1:
		return d.text[:o.begin+1] + d.text[o.after-1:]
	case i == len(o.members)-1:
		return d.text[:o.members[i-1].after] + d.text[m.after:]
	default:
		return d.text[:m.keyBegin] + d.text[o.members[i+1].keyBegin:]
	}
}

func quote(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)

	return strings.TrimSuffix(b.String(), "\n")
}

// editJSON applies the setting to a JSON document.
func (s *SettingSpec) editJSON(before Text) Edit {
	d, err := readJSON(before)
	if err != nil {
		return Edit{Err: err}
	}
	keys, o := s.keys(), d.root
	if len(keys) == 0 {
		return Edit{After: before}
	}
	depth := 0
	for ; depth < len(keys)-1; depth++ {
		i, found := o.find(keys[depth])
		if !found {
			break
		}
		m := o.members[i]
		if d.text[m.begin] != '{' {
			return Edit{Err: fmt.Errorf("%s is %s, not an object", strings.Join(keys[:depth+1], "."), kindOf(d.text[m.begin]))}
		}
		o = objectAt(d.text, m.begin)
	}
	i, found := o.find(keys[depth])
	found = found && depth == len(keys)-1
	edit := Edit{After: before, Present: found}
	if found && len(before.lines) > 0 {
		edit.Lines = before.numbers([]int{lineAt(d.text, o.members[i].keyBegin) - 1})
	}
	change := model.Change{Action: actionEdit, Property: "value"}
	old := ""
	if found {
		old = d.text[o.members[i].begin:o.members[i].after]
		change.From = shownJSON(old)
	}
	after := ""
	switch {
	case !s.isComplete() || s.isAbsent() && !found || !s.isAbsent() && found && sameJSON(old, s.Value.json):
		return edit
	case s.isAbsent():
		after, change.Message = d.remove(o, i), "Would have removed "+s.keyName()
	case found:
		change.To = shownJSON(s.Value.json)
		after, change.Message = d.replace(o.members[i], s.Value.json), s.changed(change.From, change.To)
	default:
		change.To = shownJSON(s.Value.json)
		after, change.Message = d.insert(o, keys[depth], s.nested(keys[depth+1:])), "Would have added "+s.keyName()
	}
	edit.After, edit.Change, edit.Present = before.rewritten(after), change, s.isAbsent()

	return edit
}

// nested returns the value within the missing parents.
func (s *SettingSpec) nested(keys []string) string {
	raw := s.Value.json
	for i := len(keys) - 1; i >= 0; i-- {
		raw = "{" + quote(keys[i]) + ":" + raw + "}"
	}

	return raw
}

// sameJSON reports whether two values are equal, whatever their blanks and the order of their keys.
func sameJSON(a, b string) bool {
	var values [2]any
	for i, raw := range []string{a, b} {
		d := json.NewDecoder(strings.NewReader(raw))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}

	return same(values[0], values[1])
}

func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, is := b.(map[string]any)
		if !is || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, has := b[key]
			if !has || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, is := b.([]any)
		if !is || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !same(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, is := b.(json.Number)
		return is && sameNumber(string(a), string(b))
	default:
		return a == b
	}
}

// sameNumber compares numbers by their text, and small ones by their value: 1.0 is 1.
func sameNumber(a, b string) bool {
	const exact = 1 << 53
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)

	return a == b || errX == nil && errY == nil && x == y && x < exact && x > -exact
}

// rewritten returns the text with another content. Equal lines at the beginning and at the end keep their numbers.
func (t Text) rewritten(content string) Text {
	out := Text{mark: t.mark}
	for raw := range strings.Lines(content) {
		out.lines = append(out.lines, line{raw: raw})
	}
	most := min(len(t.lines), len(out.lines))
	begin := 0
	for begin < most && t.lines[begin].raw == out.lines[begin].raw {
		out.lines[begin].number = t.lines[begin].number
		begin++
	}
	for n := 1; n <= most-begin; n++ {
		from, to := t.lines[len(t.lines)-n], &out.lines[len(out.lines)-n]
		if from.raw != to.raw {
			break
		}
		to.number = from.number
	}

	return out
}
