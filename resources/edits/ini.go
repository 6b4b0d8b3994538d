package edits

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

const blanks = " \t"

// grammar finds the options in the lines of a file.
type grammar struct {
	// separator is = or :, or empty for keyvalue, where blanks and = separate.
	separator string
	sections  bool
}

// option is a line with a key.
type option struct {
	// head is all before the value: blanks, key and separator.
	head, key, value string
	// tail is the blanks after the value.
	tail string
	// separator is the text between key and value, empty for a key without a value.
	separator string
}

func (s *SettingSpec) defaultSeparator() string {
	if s.format() == formatINI {
		return " = "
	}

	return "="
}

// grammarWith returns the grammar for a separator.
func (s *SettingSpec) grammarWith(separator string) grammar {
	g := grammar{separator: strings.Trim(separator, blanks), sections: s.format() == formatINI}
	if !g.sections && g.separator == "=" {
		g.separator = ""
	}

	return g
}

// grammarOf returns the grammar of a text: colons separate if separator has one, or if most options of an ini
// file have one.
func (s *SettingSpec) grammarOf(t Text) grammar {
	if s.Separator != "" || s.format() != formatINI {
		return s.grammarWith(cmp.Or(s.Separator, s.defaultSeparator()))
	}
	colons := 0
	for i := range t.lines {
		text := t.at(i)
		if isComment(text) {
			continue
		}
		if at := strings.IndexAny(text, "=:"); at >= 0 {
			if text[at] == ':' {
				colons++
			} else {
				colons--
			}
		}
	}
	if colons > 0 {
		return s.grammarWith(":")
	}

	return s.grammarWith("=")
}

func isBlank(text string) bool { return strings.Trim(text, blanks) == "" }

func isComment(text string) bool {
	text = strings.TrimLeft(text, blanks)

	return strings.HasPrefix(text, "#") || strings.HasPrefix(text, ";")
}

func isIndented(text string) bool { return text != "" && strings.IndexByte(blanks, text[0]) >= 0 }

// sectionOf returns the name of a section header.
func sectionOf(text string) (name string, is bool) {
	text = strings.TrimLeft(text, blanks)
	if !strings.HasPrefix(text, "[") {
		return "", false
	}
	for at := 1; at < len(text); at++ {
		if text[at] == ']' && (isBlank(text[at+1:]) || isComment(text[at+1:])) {
			return text[1:at], true
		}
	}

	return "", false
}

// split returns the position of the separator and of the value, and whether there is a separator.
func (g grammar) split(text string) (key, value int, is bool) {
	if g.separator != "" {
		at := strings.Index(text, g.separator)
		if at < 0 {
			return len(text), len(text), false
		}
		value = at + len(g.separator)
		return len(strings.TrimRight(text[:at], blanks)), value + leading(text[value:]), true
	}
	key = strings.IndexAny(text, blanks+"=")
	if key < 0 {
		return len(text), len(text), false
	}
	value = key + leading(text[key:])
	if value < len(text) && text[value] == '=' {
		value++
		value += leading(text[value:])
	}

	return key, value, true
}

// leading returns the number of blanks at the beginning.
func leading(text string) int { return len(text) - len(strings.TrimLeft(text, blanks)) }

// option returns the option of a line. A line without a separator is a key without a value.
func (g grammar) option(text string) (option, bool) {
	if isBlank(text) || isComment(text) {
		return option{}, false
	}
	if _, is := sectionOf(text); is && g.sections {
		return option{}, false
	}
	content := strings.TrimRight(text, blanks)
	indent := leading(content)
	key, value, separated := g.split(content[indent:])
	key, value = indent+key, indent+value
	o := option{head: content[:value], key: content[indent:key], value: content[value:], tail: text[len(content):]}
	if separated {
		o.separator = content[key:value]
		if o.value == "" { // the blanks belong to the separator
			o.head, o.separator, o.tail = text, text[key:], ""
		}
	}

	return o, o.key != ""
}

// occurrence is an option in a text, with the lines that continue it.
type occurrence struct {
	option
	begin, end int
}

// full returns the value with its continuations.
func (o occurrence) full(t Text) string {
	value := o.value
	for i := o.begin + 1; i < o.end; i++ {
		value += "\n" + strings.Trim(t.at(i), blanks)
	}

	return value
}

// occurrences returns the options within lines.
func (g grammar) occurrences(t Text, within extent) []occurrence {
	var out []occurrence
	continued := -1
	for i := within.begin; i < within.end; i++ {
		text := t.at(i)
		last := len(out) - 1
		if continued == i || last >= 0 && out[last].end == i && g.continues(text) {
			out[last].end = i + 1
			if strings.HasSuffix(text, `\`) {
				continued = i + 1
			}
			continue
		}
		o, is := g.option(text)
		if !is {
			continue
		}
		out = append(out, occurrence{o, i, i + 1})
		if strings.HasSuffix(text, `\`) {
			continued = i + 1
		}
	}

	return out
}

// continues reports whether a line continues the value of the option above.
func (g grammar) continues(text string) bool {
	if !g.sections || !isIndented(text) || isBlank(text) || isComment(text) {
		return false
	}
	_, is := sectionOf(text)

	return !is && !strings.Contains(text, g.separator)
}

// lineEdit applies a setting to a file of lines.
type lineEdit struct {
	*SettingSpec
	grammar grammar
	before  Text
	// want are the wanted values.
	want []string
}

// section returns the lines of a section without its header, and whether the section exists. It ends before the
// blank lines and the comment of the next section.
func (s *SettingSpec) section(t Text) (body extent, found bool, err error) {
	header := -1
	body.end = -1
	if found = s.Section == "" || s.format() != formatINI; found {
		body.begin = 0
	}
	for i := range t.lines {
		name, is := "", false
		if s.format() == formatINI {
			name, is = sectionOf(t.at(i))
		}
		switch {
		case !is:
		case s.Section != "" && name == s.Section && found:
			return body, true, fmt.Errorf("the section [%s] is on %s: make it one section", name, t.name([]int{header, i}))
		case s.Section != "" && name == s.Section:
			header, body.begin, found = i, i+1, true
		case found && body.end < 0:
			body.end = endBefore(t, body.begin, i)
		}
	}
	if body.end < 0 {
		body.end = len(t.lines)
		for body.end > body.begin && isBlank(t.at(body.end-1)) {
			body.end--
		}
	}

	return body, found, nil
}

// endBefore returns the end of a section before the header of the next one.
func endBefore(t Text, begin, header int) int {
	end := header
	for end > begin && isComment(t.at(end-1)) {
		end--
	}
	if end > begin && !isBlank(t.at(end-1)) {
		end = header // the comment belongs to the lines above it
	}
	for end > begin && isBlank(t.at(end-1)) {
		end--
	}

	return end
}

// editLines applies the setting to a file of lines.
func (s *SettingSpec) editLines(before Text) Edit {
	body, found, err := s.section(before)
	if err != nil {
		return Edit{Err: err}
	}
	e := lineEdit{SettingSpec: s, grammar: s.grammarOf(before), before: before}
	if s.Key.IsZero() {
		return e.removeSection(body, found)
	}
	key := s.keys()[0]
	var all []occurrence
	if found {
		all = e.grammar.occurrences(before, body)
	}
	mine := slices.DeleteFunc(slices.Clone(all), func(o occurrence) bool { return o.key != key })
	edit := Edit{After: before, Present: len(mine) > 0}
	for _, o := range mine {
		edit.Lines = append(edit.Lines, int(before.lines[o.begin].number))
	}
	e.want, _ = s.Value.texts()
	switch {
	case s.isAbsent():
		return e.removeKey(edit, mine)
	case !s.isComplete():
		return edit
	case len(mine) > 1 && s.Value.isScalar():
		var at []int
		for _, o := range mine {
			at = append(at, o.begin)
		}
		edit.Err = fmt.Errorf("%s is on %s: give a list of values, or use a `line`", key, before.name(at))
		return edit
	case !found:
		return e.addSection()
	case len(mine) == 0:
		return e.addKey(body, all)
	}

	return e.changeKey(edit, mine)
}

func (e lineEdit) removeKey(edit Edit, mine []occurrence) Edit {
	if len(mine) == 0 {
		return edit
	}
	var lines []int
	for _, o := range mine {
		for i := o.begin; i < o.end; i++ {
			lines = append(lines, i)
		}
	}
	edit.After = edit.After.removeEach(lines)
	edit.Change = model.Change{Action: actionEdit, Property: "value", Message: "Would have removed " + e.keyName() + e.in(" from "), From: mine[0].value}

	return edit
}

// in returns the words for the section, after a preposition.
func (s *SettingSpec) in(preposition string) string {
	if s.Section == "" {
		return ""
	}

	return preposition + "[" + s.Section + "]"
}

// removeSection removes a section with its header and the blank lines after it, or before it if it is the last.
func (e lineEdit) removeSection(body extent, found bool) Edit {
	before := e.before
	if !found || !e.isAbsent() {
		return Edit{After: before, Present: found}
	}
	begin, end := body.begin-1, body.end
	for end < len(before.lines) && isBlank(before.at(end)) {
		end++
	}
	for end == len(before.lines) && begin > 0 && isBlank(before.at(begin-1)) {
		begin--
	}

	return Edit{
		After: before.remove(begin, end), Present: true, Lines: before.numbers([]int{body.begin - 1}),
		Change: model.Change{Action: actionEdit, Property: "section", Message: "Would have removed [" + e.Section + "]", From: e.Section},
	}
}

// changeKey replaces the values that differ, removes surplus lines of the key and adds missing ones.
func (e lineEdit) changeKey(edit Edit, mine []occurrence) Edit {
	before, want := e.before, e.want
	var current []string
	for _, o := range mine {
		current = append(current, o.full(before))
	}
	if slices.Equal(current, want) {
		return edit
	}
	after, surplus := before.copied(), []int(nil)
	for n, o := range mine {
		from := o.begin
		if n < len(want) {
			from++
			if current[n] == want[n] {
				continue
			}
			after.lines[o.begin] = after.lines[o.begin].with(o.replaced(want[n], e.separatorFor(mine)))
		}
		for i := from; i < o.end; i++ {
			surplus = append(surplus, i)
		}
	}
	if more := len(want) - len(mine); more > 0 {
		last := mine[len(mine)-1]
		var texts []string
		for _, value := range want[len(mine):] {
			texts = append(texts, last.replaced(value, e.separatorFor(mine)))
		}
		after = after.insert(last.end, texts...)
	}
	from, to := strings.Join(current, ", "), strings.Join(want, ", ")
	edit.After, edit.Present = after.removeEach(surplus), false
	edit.Change = model.Change{Action: actionEdit, Property: "value", Message: e.changed(from, to), From: from, To: to}

	return edit
}

// replaced returns the line with another value. A key without a value gets a separator.
func (o option) replaced(value, separator string) string {
	if o.separator == "" {
		return o.head + separator + value
	}

	return o.head + value + o.tail
}

// addKey adds the key below a commented-out line of it, or at the end of the section.
func (e lineEdit) addKey(body extent, beside []occurrence) Edit {
	before := e.before
	at, indent := body.end, ""
	if len(beside) > 0 {
		last := beside[len(beside)-1]
		indent = last.head[:leading(last.head)]
	}
	for i := body.begin; i < body.end; i++ {
		if e.isCommentedOut(before.at(i)) {
			at = i + 1
		}
	}
	if at > 0 && strings.HasSuffix(before.at(at-1), `\`) && !isComment(before.at(at-1)) {
		return Edit{Err: fmt.Errorf("%s ends with a backslash, which would make the new key part of it", before.name([]int{at - 1}))}
	}

	return e.added(before.insert(at, e.texts(indent)...), "Would have added "+e.keyName()+e.in(" to "))
}

// isCommentedOut reports whether a line is the key, commented out.
func (e lineEdit) isCommentedOut(text string) bool {
	if !isComment(text) {
		return false
	}
	o, is := e.grammar.option(strings.TrimLeft(strings.TrimLeft(text, blanks)[1:], blanks))

	return is && o.separator != "" && o.key == e.keys()[0]
}

// addSection adds the section with the key at the end.
func (e lineEdit) addSection() Edit {
	before := e.before
	texts := append([]string{"[" + e.Section + "]"}, e.texts("")...)
	if n := len(before.lines); n > 0 && !isBlank(before.at(n-1)) {
		texts = append([]string{""}, texts...)
	}

	return e.added(before.insert(len(before.lines), texts...), "Would have added ["+e.Section+"] with "+e.keyName())
}

func (e lineEdit) added(after Text, message string) Edit {
	return Edit{After: after, Change: model.Change{Action: actionEdit, Property: "value", Message: message, To: strings.Join(e.want, ", ")}}
}

// texts returns the new lines of the key.
func (e lineEdit) texts(indent string) []string {
	separator := e.separatorFor(e.grammar.occurrences(e.before, extent{0, len(e.before.lines)}))
	out := make([]string, len(e.want))
	for i, value := range e.want {
		out[i] = indent + e.keys()[0] + separator + value
	}

	return out
}

// separatorFor returns the separator of a new key: the property, or the most frequent separator.
func (e lineEdit) separatorFor(beside []occurrence) string {
	if e.Separator != "" {
		return e.Separator
	}
	best, counts := "", map[string]int{}
	for _, o := range beside {
		if o.separator == "" || o.value == "" {
			continue
		}
		if counts[o.separator]++; counts[o.separator] > counts[best] {
			best = o.separator
		}
	}
	if best == "" && e.grammar.separator == ":" {
		return ": "
	}

	return cmp.Or(best, e.defaultSeparator())
}
