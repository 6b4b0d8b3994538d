package edits

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// checkExpression reports an invalid regular expression with the position of the mistake.
func checkExpression(out *model.Problems, property, pattern string) *regexp.Regexp {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re
	}
	invalid := &syntax.Error{}
	if !errors.As(err, &invalid) {
		out.Property(property, "", "`%s` is no regular expression: %s", property, err)
		return nil
	}
	hint := "the syntax is RE2, https://github.com/google/re2/wiki/Syntax"
	if strings.HasPrefix(invalid.Expr, "(?") || invalid.Code == syntax.ErrInvalidEscape {
		hint = "RE2 has no lookaround and no backreferences"
	}
	at := strings.LastIndex(pattern, invalid.Expr)
	switch invalid.Code {
	case syntax.ErrMissingParen:
		at = strings.LastIndex(pattern, "(")
	case syntax.ErrUnexpectedParen:
		at = strings.Index(pattern, ")")
	}
	out.Property(property, hint, "`%s` is no regular expression, at character %d: %s: %s", property, max(at, 0)+1, invalid.Code, invalid.Expr)

	return nil
}

// matching returns the lines that a valid expression matches, without their ends.
func (t Text) matching(pattern string) []int {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	var out []int
	for i := range t.lines {
		if re.MatchString(t.at(i)) {
			out = append(out, i)
		}
	}

	return out
}

// piece is a part of a template: a text, or a group of an expression.
type piece struct {
	text  string
	group string
}

// template splits a text into texts and groups: \1, \g<1> and \g<name>; \\ is a backslash.
func template(text string) []piece {
	var out []piece
	literal := func(s string) {
		if last := len(out) - 1; last >= 0 && out[last].group == "" {
			out[last].text += s
			return
		}
		out = append(out, piece{text: s})
	}
	for text != "" {
		at := strings.IndexByte(text, '\\')
		if at < 0 || at == len(text)-1 {
			literal(text)
			break
		}
		if at > 0 {
			literal(text[:at])
		}
		rest := text[at+1:]
		group, after, named := "", "", false
		if inner, is := strings.CutPrefix(rest, "g<"); is {
			group, after, named = strings.Cut(inner, ">")
		}
		switch {
		case named && group != "":
			out, text = append(out, piece{group: group}), after
		case rest[0] >= '0' && rest[0] <= '9':
			out, text = append(out, piece{group: rest[:1]}), rest[1:]
		case rest[0] == '\\':
			literal(`\`)
			text = rest[1:]
		default:
			literal(`\`)
			text = rest
		}
	}

	return out
}

// groupOf returns the number of a group, or -1.
func groupOf(re *regexp.Regexp, group string) int {
	if n, err := strconv.Atoi(group); err == nil {
		if n < 0 || n > re.NumSubexp() {
			return -1
		}
		return n
	}

	return re.SubexpIndex(group)
}

// fill inserts the groups of a match in a text into a template.
func fill(re *regexp.Regexp, pieces []piece, text string) string {
	match := re.FindStringSubmatch(text)
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.text)
		if p.group == "" {
			continue
		}
		if n := groupOf(re, p.group); n >= 0 && n < len(match) {
			b.WriteString(match[n])
		}
	}

	return b.String()
}
