package edits

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// LineSpec is the properties of a line.
type LineSpec struct {
	Target
	// Line is nil for a query.
	Line    *string `json:"line,omitempty" sensitive:"true" jsonschema_description:"The line, without a line end; required except with absent"`
	Match   string  `json:"match,omitempty" alias:"regexp" filled:"true" jsonschema_description:"Regular expression (RE2) of the lines that are replaced or removed; it is not anchored"`
	Matches string  `json:"matches,omitempty" jsonschema:"enum=one,enum=first,enum=last,enum=all" jsonschema_description:"Which of several matching lines; with one, several are an error; default: one, with absent all"`
	Where
	Add    *bool `json:"add,omitempty" jsonschema_description:"Whether the line is added if none matches; default: true, with expand false"`
	Expand bool  `json:"expand,omitempty" jsonschema_description:"Replace \\1 and \\g<name> in the line by the groups of match; adds no line"`
	Creation
}

// The values of Matches.
const (
	matchesOne   = "one"
	matchesFirst = "first"
	matchesLast  = "last"
	matchesAll   = "all"
)

func (s *LineSpec) ref() model.Ref { return model.Ref{Type: "line", Name: s.Name} }

func (s *LineSpec) isComplete() bool { return s.Line != nil || s.isAbsent() && s.Match != "" }

// id is the expression, or the line.
func (s *LineSpec) id() string {
	if s.Match != "" || s.Line == nil {
		return "match:" + s.Match
	}

	return "line:" + *s.Line
}

// Validate reports every problem of the properties.
func (s *LineSpec) Validate() model.Problems {
	var out model.Problems
	s.validatePath(&out)
	s.validateCreation(&out, s.Ensure)
	re := checkExpression(&out, "match", s.Match)
	if !slices.Contains([]string{"", matchesOne, matchesFirst, matchesLast, matchesAll}, s.Matches) {
		out.Property("matches", "one of one, first, last, all", "invalid `matches` %q", s.Matches)
	}
	if s.Line != nil && strings.ContainsAny(*s.Line, "\n\r\x00") {
		out.Property("line", "use a `block` for several lines", "a line has no line ends and no NUL bytes")
	}
	switch {
	case s.isAbsent() && s.Line == nil && s.Match == "":
		out.Property("match", "set line for one text, or match for an expression", "a line that is absent needs `line` or `match`")
	case s.isAbsent():
		if s.Matches == matchesFirst || s.Matches == matchesLast {
			out.Property("matches", "write all, or one to be safe", "`matches: %s` with ensure: absent would remove another line in each run", s.Matches)
		}
		return out
	case s.Line == nil:
		out.Property("line", "for example line: PermitRootLogin no", "`line` is required unless ensure is absent")
	}
	s.validateWhere(&out)
	s.validateMatch(&out, re)

	return out
}

func (s *LineSpec) validateMatch(out *model.Problems, re *regexp.Regexp) {
	if s.Match == "" {
		needs := func(property string, set bool) {
			if set {
				out.Property(property, "set match, or remove it", "`%s` is only for `match`", property)
			}
		}
		needs("matches", s.Matches != "")
		needs("add", s.Add != nil && !*s.Add)
		needs("expand", s.Expand)
		return
	}
	switch {
	case re == nil || s.Line == nil:
	case s.Expand && s.Add != nil && *s.Add:
		out.Property("add", "remove it", "`expand` adds no line: without a match there are no groups")
	case s.Expand:
		for _, p := range template(*s.Line) {
			if p.group != "" && groupOf(re, p.group) < 0 {
				out.Property("line", "correct the group, or write \\\\ for a backslash", "`match` has no group %q", p.group)
			}
		}
	case !re.MatchString(*s.Line):
		out.Property("match", "change one of them, for example match: '^#?Port ' for line: Port 22", "`match` does not match `line`: each run would add the line again")
	}
	if !s.adds() && len(s.set()) > 0 {
		out.Property(s.set()[0], "remove it", "`%s` has no effect if no line is added", s.set()[0])
	}
}

// Warnings returns properties without effect.
func (s *LineSpec) Warnings() model.Problems {
	more := s.set()
	if s.Add != nil {
		more = append(more, "add")
	}
	if s.Expand {
		more = append(more, "expand")
	}
	if s.isAbsent() {
		return s.warnings(s.Ensure, more...)
	}

	return append(s.warnWhere(), s.warnings(s.Ensure)...)
}

// adds reports whether the line is added if no line matches.
func (s *LineSpec) adds() bool { return !s.Expand && (s.Add == nil || *s.Add) }

// Edit applies the line to a text.
func (s *LineSpec) Edit(before Text, _ []Part) Edit {
	switch {
	case !s.isComplete():
		found := s.find(before)
		return Edit{After: before, Present: len(found) > 0, Lines: before.numbers(found)}
	case s.isAbsent():
		return s.remove(before)
	case s.Match == "":
		if found := s.find(before); len(found) > 0 {
			return Edit{After: before, Present: true, Lines: before.numbers(found)}
		}
		return s.add(before)
	}
	found := s.find(before)
	chosen, err := s.choose(before, found)
	switch {
	case err != nil:
		return Edit{Err: err}
	case len(found) == 0 && !s.adds():
		return Edit{After: before}
	case len(found) == 0:
		return s.add(before)
	}

	return s.change(before, chosen)
}

// find returns the lines that match, or without match the lines that are equal to the line. The absence of a
// line and a match finds both.
func (s *LineSpec) find(t Text) []int {
	var re *regexp.Regexp
	if s.Match != "" {
		re = regexp.MustCompile(s.Match)
	}
	equal := s.Line != nil && (re == nil || s.isAbsent())
	var out []int
	for i := range t.lines {
		if text := t.at(i); equal && text == *s.Line || re != nil && re.MatchString(text) {
			out = append(out, i)
		}
	}

	return out
}

// choose returns the lines of found that matches selects.
func (s *LineSpec) choose(t Text, found []int) ([]int, error) {
	selected := s.Matches
	if selected == "" && s.isAbsent() {
		selected = matchesAll
	}
	switch {
	case len(found) < 2 || selected == matchesAll:
		return found, nil
	case selected == matchesFirst:
		return found[:1], nil
	case selected == matchesLast:
		return found[len(found)-1:], nil
	default:
		return nil, fmt.Errorf("`match` matches %s: make it match one line, or set `matches` to first, last or all", t.name(found))
	}
}

func (s *LineSpec) add(before Text) Edit {
	i, err := s.Where.find(before)
	if err != nil {
		return Edit{Err: err}
	}
	change := model.Change{Action: actionEdit, Message: "Would have added a line" + before.where(i), Property: "line", To: *s.Line}

	return Edit{After: before.insert(i, *s.Line), Change: change}
}

// change replaces the chosen lines that differ.
func (s *LineSpec) change(before Text, chosen []int) Edit {
	wanted := func(string) string { return *s.Line }
	if s.Expand {
		re, pieces := regexp.MustCompile(s.Match), template(*s.Line)
		wanted = func(text string) string { return fill(re, pieces, text) }
	}
	after, change, differing := before.copied(), model.Change{Action: actionEdit, Property: "line"}, []int(nil)
	for _, i := range chosen {
		text := before.at(i)
		want := wanted(text)
		if want == text {
			continue
		}
		if differing == nil {
			change.From, change.To = text, want
		}
		after.lines[i] = before.lines[i].with(want)
		differing = append(differing, i)
	}
	edit := Edit{After: before, Lines: before.numbers(chosen), Present: differing == nil}
	if differing != nil {
		change.Message = "Would have changed " + before.name(differing)
		edit.After, edit.Change = after, change
	}

	return edit
}

func (s *LineSpec) remove(before Text) Edit {
	chosen, err := s.choose(before, s.find(before))
	if err != nil || len(chosen) == 0 {
		return Edit{After: before, Err: err}
	}

	return Edit{
		After: before.removeEach(chosen), Present: true, Lines: before.numbers(chosen),
		Change: model.Change{Action: actionEdit, Message: "Would have removed " + before.name(chosen), Property: "line", From: before.at(chosen[0])},
	}
}
