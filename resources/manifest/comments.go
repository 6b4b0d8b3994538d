package manifest

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

// These comments above a key check its resolved value.
const (
	annotationRequire  = "@require"
	annotationValidate = "@validate"
	// annotationRequired is an alias of annotationRequire.
	annotationRequired = "@required"
)

// comment is a comment without its sign.
type comment struct {
	text string
	pos  model.Position
	// within reports whether it is inside a multi-line value.
	within bool
}

func (c comment) word() string {
	word, _, _ := strings.Cut(c.text, " ")

	return word
}

// annotationOf returns the check of a comment and the text after it. Both are empty if the comment
// checks nothing.
func annotationOf(text string) (annotation, rest string) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case annotationRequire, annotationRequired:
		return annotationRequire, strings.TrimSpace(rest)
	case annotationValidate:
		return annotationValidate, strings.TrimSpace(rest)
	default:
		return "", ""
	}
}

var (
	mayCheck = regexp.MustCompile(`#[ \t]*@[A-Za-z]`)
	// trailing matches a check in a comment after a value.
	trailing = regexp.MustCompile(`[ \t]#[ \t]*(@[A-Za-z]+)`)
)

// commentsAbove returns the comments directly above a key in order. It ignores comments to the
// right of the column of the key, which may be lines of a text.
func commentsAbove(lines [][]byte, key model.Position) []comment {
	var out []comment
	for i := key.Line - 2; i >= 0 && i < len(lines); i-- {
		line := bytes.TrimRight(lines[i], " \t\r")
		text := bytes.TrimLeft(line, " ")
		column := len(line) - len(text) + 1
		switch {
		case len(text) == 0:
			continue
		case text[0] != '#' || column > key.Column:
			return out
		}
		c := comment{text: strings.TrimSpace(string(text[1:])), pos: model.Position{File: key.File, Line: i + 1, Column: column}}
		out = append([]comment{c}, out...)
	}

	return out
}

// commentScan finds the comments of a document that check values.
type commentScan struct {
	lines [][]byte
	// read is the last line whose end was searched for comments.
	read int
	// checks are the comments that check the value of a key, by its position.
	checks map[model.Position][]string
	// problems are comments that look like checks but check nothing.
	problems model.Problems
}

// scanComments scans the data and the overrides of a document. It returns nothing if no comment
// looks like a check.
func scanComments(d *Document) (checks map[model.Position][]string, problems model.Problems) {
	if !mayCheck.Match(d.text) {
		return nil, nil
	}
	s := commentScan{lines: bytes.Split(d.text, []byte("\n")), checks: map[model.Position][]string{}}
	s.value(d.Data)
	s.read = 0
	for _, o := range d.Overrides.Entries {
		s.value(o.Value)
	}

	return s.checks, s.problems
}

func (s *commentScan) value(v document.Value) {
	for _, item := range v.Items {
		if item.Kind != document.Map && item.Kind != document.List {
			for _, c := range s.behind(item.Pos) {
				s.problems.Add(c.pos, "put it above the key of the list", "the comment `%s` checks nothing after an item of a list", c.word())
			}
		}
		s.value(item)
	}
	for _, e := range v.Entries {
		at := e.Pos
		for _, c := range commentsAbove(s.lines, at) {
			switch meant := meantBy(c.word()); {
			case meant == "":
			case meant != c.word():
				s.misspelled(c, meant)
			case c.pos.Column == at.Column:
				s.checks[at] = append(s.checks[at], c.text)
			case begins(s.lines, at):
				s.problems.Add(c.pos, "begin it in the column of the key", "the comment `%s` checks nothing, because it is not indented as `%s` below it", c.word(), e.Key)
			}
		}
		for _, c := range s.behind(at) {
			switch meant := meantBy(c.word()); {
			case meant != c.word():
				s.misspelled(c, meant)
			case c.within:
				s.problems.Add(c.pos, "put it on a separate line above the key", "the comment `%s` checks nothing within the value of `%s`", c.word(), e.Key)
			case begins(s.lines, at):
				s.checks[at] = append(s.checks[at], c.text)
			default:
				s.problems.Add(c.pos, "put it on a separate line above the key", "the comment `%s` checks nothing, because its line does not begin with a key", c.word())
			}
		}
		s.value(e.Value)
	}
}

func (s *commentScan) misspelled(c comment, meant string) {
	s.problems.Add(c.pos, "did you mean `"+meant+"`?", "the comment `%s` checks nothing", c.word())
}

// begins reports whether a key is the first word of its line, or of a list item.
func begins(lines [][]byte, key model.Position) bool {
	// A lone \r is a line break to YAML only.
	if key.Line > len(lines) {
		return false
	}
	before := lines[key.Line-1]

	return len(bytes.Trim(before[:min(key.Column-1, len(before))], " -")) == 0
}

// behind returns the comments after a key or item that begins at a position: on its line, and on the
// following lines of a quoted text or flow collection. It returns each line once, so call it for the
// keys in the order of the document.
func (s *commentScan) behind(at model.Position) []comment {
	if at.Line <= s.read {
		return nil
	}
	var out []comment
	var state lineState
	for i := at.Line - 1; i >= 0 && i < len(s.lines); i++ {
		if from := state.comment(s.lines[i]); from >= 0 {
			out = append(out, meantOn(s.lines[i], from, model.Position{File: at.File, Line: i + 1}, state.open())...)
		}
		if !state.open() {
			s.read = i + 1
			return out
		}
	}

	return nil
}

// meantOn returns the comments of a line, from an offset, that look like checks.
func meantOn(line []byte, from int, at model.Position, within bool) []comment {
	var out []comment
	found := trailing.FindAllSubmatchIndex(line[from:], -1)
	for n, match := range found {
		end := len(line)
		if n+1 < len(found) {
			end = from + found[n+1][0]
		}
		if meantBy(string(line[from+match[2]:from+match[3]])) == "" {
			continue
		}
		pos := document.PositionAt(at.File, line, from+match[0]+1)
		pos.Line = at.Line
		out = append(out, comment{text: string(bytes.TrimSpace(line[from+match[2] : end])), pos: pos, within: within})
	}

	return out
}

// lineState is the open quoted text and flow collections at the end of a line.
type lineState struct {
	quote byte
	depth int
}

func (s *lineState) open() bool { return s.quote != 0 || s.depth > 0 }

// comment reads a line and returns the offset of the space before its comment, or -1.
func (s *lineState) comment(line []byte) int {
	starts := true // whether a value may begin here
	for i := 0; i < len(line); i++ {
		c, last := line[i], i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' || line[i+1] == '\r'
		switch {
		case s.quote == '"' && c == '\\':
			i++
		case s.quote != 0:
			if c == s.quote {
				s.quote, starts = 0, false
			}
		case starts && (c == '"' || c == '\''):
			s.quote = c
		case starts && (c == '&' || c == '!'):
			for ; i+1 < len(line) && line[i+1] != ' '; i++ { // an anchor or a tag
			}
		case c == '#' && i > 0 && (line[i-1] == ' ' || line[i-1] == '\t'):
			return i - 1
		case (starts || s.depth > 0) && (c == '[' || c == '{'):
			s.depth++
			starts = true
		case s.depth > 0 && (c == ']' || c == '}'):
			s.depth--
		case c == ' ' || c == '\t':
		case c == ',' && s.depth > 0, c == ':' && (last || s.depth > 0), starts && last && (c == '-' || c == '?'):
			starts = true
		default:
			starts = false
		}
	}

	return -1
}

// meantBy returns the check that a word is or resembles. It is empty for other words.
func meantBy(word string) string {
	if !strings.HasPrefix(word, "@") {
		return ""
	}

	return document.Nearest(strings.ToLower(strings.TrimRight(word, ":,.")), []string{annotationRequire, annotationValidate, annotationRequired})
}

// annotationChecks checks values by the comments of a document.
type annotationChecks struct {
	checks map[model.Position][]string
	scope  *scope
	data   map[string]any
	out    model.Problems
}

func checkAnnotations(ctx context.Context, w *evaluator, data map[string]any, taken []override) model.Problems {
	checks, _ := w.doc.comments()
	if len(checks) == 0 {
		return nil
	}
	a := annotationChecks{data: data, checks: checks, scope: w.newScope(ctx, inResources, data, nil)}
	a.value(ctx, w.doc.Data, nil, nil)
	for _, o := range taken {
		a.value(ctx, o.values, nil, o.below)
	}

	return a.out
}

// value checks a value at a path of the data. below is the value that it was merged into, or nil.
func (a *annotationChecks) value(ctx context.Context, v document.Value, path []string, below any) {
	for _, e := range v.Entries {
		at := append(path[:len(path):len(path)], e.Key)
		for _, comment := range a.checks[e.Pos] {
			a.check(ctx, e.Pos, at, comment)
		}
		under, _ := expression.Find(below, []string{e.Key})
		a.value(ctx, e.Value, at, under)
	}
	// A merge appends the items of this list to the list below.
	appended, _ := below.([]any)
	for i, item := range v.Items {
		at := append(path[:len(path):len(path)], strconv.Itoa(len(appended)+i))
		// The list that replaced this one may be shorter.
		if _, ok := expression.Find(a.data, at); ok {
			a.value(ctx, item, at, nil)
		}
	}
}

func (a *annotationChecks) check(ctx context.Context, pos model.Position, path []string, comment string) {
	annotation, rest := annotationOf(comment)
	value, known := expression.Find(a.data, path)
	name := strings.Join(path, ".")
	switch annotation {
	case annotationRequire:
		if !known || isUnset(value) {
			a.out.Add(pos, "set it in data, an override or with --data", "`%s` is required and has no value", name)
		}
		if strings.HasPrefix(rest, annotationValidate) {
			a.check(ctx, pos, path, rest) // both checks are in one comment
		}
	case annotationValidate:
		program := a.scope.Program(rest, ofValue)
		if program.Message != "" {
			a.out.Add(pos, program.Hint, "the expression of @validate is not valid: %s", program.Message)
			return
		}
		known := checks()
		checksText := slices.ContainsFunc(program.OfValue, func(name string) bool { return known[name] != nil })
		if v, err := expression.ToValue(value, pos); err == nil && checksText && (v.Kind == document.Null || !v.IsScalar()) {
			return
		}
		a.validate(ctx, pos, program, name, value)
	}
}

func (a *annotationChecks) validate(ctx context.Context, pos model.Position, p *expression.Program, name string, value any) {
	source := p.Source().String()
	names := checks()
	names[expression.NameValue] = template.Reveal(value, a.scope.reveal)
	result, _, f := a.scope.run(ctx, p, names)
	shown := ""
	if v, err := expression.ToValue(value, pos); err == nil && v.IsScalar() && !v.Secret {
		shown = " " + v.Text
	}
	ok, isBool := result.(bool)
	switch {
	case f != nil && template.Holds(value):
		a.out.Add(pos, "", "the value of `%s` cannot be checked by `%s`", name, source)
	case f != nil:
		a.out.Add(pos, f.hint, "the value of `%s` cannot be checked by `%s`: %s", name, source, f.message)
	case !isBool:
		a.out.Add(pos, "write a comparison, for example value > 0", "the expression of @validate gives %s, not true or false", expression.KindOf(result))
	case !ok:
		a.out.Add(pos, "", "the value%s of `%s` is not valid: `%s` is false", shown, name, source)
	}
}

func isUnset(v any) bool {
	value, err := expression.ToValue(v, model.Position{})

	return err == nil && value.Text == "" && (value.Kind == document.Null || value.IsScalar())
}

// The forms that the functions of @validate accept.
var (
	floatForm    = regexp.MustCompile(`^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$`)
	durationForm = regexp.MustCompile(`^[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|[dDwWMyY]))+)$`)
	topLevelForm = regexp.MustCompile(`\.[A-Za-z][A-Za-z0-9-]*$`)
)

// hostnameForm compiles to 90 KB, which few documents need.
var hostnameForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
})

const (
	maxHostname = 253
	// shellUnsafe lists the characters that make a shell run or redirect commands.
	shellUnsafe = "`$;|&<>\n\r\x00"
)

func checks() map[string]any {
	out := map[string]any{
		"isRegex":  func(v any, pattern string) (bool, error) { return isMatch("isRegex", v, pattern) },
		"is_regex": func(v any, pattern string) (bool, error) { return isMatch("is_regex", v, pattern) },
	}
	add := func(is func(string) bool, names ...string) {
		for _, name := range names {
			out[name] = func(v any) (bool, error) {
				text, err := checkedText(name, v)
				return err == nil && is(text), err
			}
		}
	}
	add(func(s string) bool { return isAddress(s, true, true) }, "isIP", "is_ip")
	add(func(s string) bool { return isAddress(s, true, false) }, "isIPv4", "is_ipv4")
	add(func(s string) bool { return isAddress(s, false, true) }, "isIPv6", "is_ipv6")
	add(func(s string) bool { _, err := strconv.ParseInt(s, 10, 64); return err == nil }, "isInt", "is_int")
	add(floatForm.MatchString, "isFloat", "is_float")
	add(durationForm.MatchString, "isDuration", "is_duration")
	add(func(s string) bool { return !strings.ContainsAny(s, shellUnsafe) }, "isShellSafe", "is_shellsafe", "is_shell_safe")
	add(isHostname, "isHostname", "is_hostname")
	add(func(s string) bool {
		s = strings.TrimSuffix(s, ".")
		return isHostname(s) && topLevelForm.MatchString(s)
	}, "isFQDN", "is_fqdn")

	return out
}

func checkedText(function string, v any) (string, error) {
	value, err := expression.ToValue(v, model.Position{})
	if err != nil || v == nil || !value.IsScalar() {
		return "", fmt.Errorf("%s takes a text, not %s", function, expression.KindOf(v))
	}

	return value.Text, nil
}

func isMatch(function string, v any, pattern string) (bool, error) {
	text, err := checkedText(function, v)
	if err != nil {
		return false, err
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return false, fmt.Errorf("%s: %w", function, err)
	}

	return compiled.MatchString(text), nil
}

func isAddress(text string, v4, v6 bool) bool {
	address, err := netip.ParseAddr(text)

	return err == nil && address.Zone() == "" && (v4 && address.Is4() || v6 && address.Is6())
}

func isHostname(text string) bool {
	return len(text) <= maxHostname && hostnameForm().MatchString(text)
}
