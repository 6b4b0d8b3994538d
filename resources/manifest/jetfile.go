package manifest

import (
	"context"
	"crypto/rand"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

// rendered returns the list of resources that a Jet template renders. It reports problems of the
// template at their line in the template, and problems of the list at their position in the
// rendered text. open reports whether some resources are unknown.
func (b *build) rendered(ctx context.Context, file document.Value) (items []document.Value, open bool) {
	r := resolver{scope: b.scope}
	path, _ := r.value(ctx, file)
	if len(r.failed) == 0 && (path.Deferred || path.Secret || !path.IsScalar()) {
		r.problems.Add(file.Pos, "for example resources_jet_file: resources.jet", "`%s` must be the path of a template, known before the run", keyJetFile)
	}
	b.problems = append(b.problems, r.problems...)
	if len(r.problems)+len(r.failed) > 0 {
		return nil, true
	}
	b.session.printed = newPrintedValues()
	list := b.session.newScopeWith(ctx, inResources, b.out.Data, nil, b.session.printed.hide)
	list.at = path.Pos
	value, m, ok := b.list(ctx, list, path)
	if ok && m.use == template.Mixed {
		m.problem(model.Position{File: renderedName(path.Text), Line: 1, Column: 1})
	} else {
		m.mark(&value)
	}
	for _, item := range value.Items {
		for i := range item.Entries {
			// Types are looked up before expressions are evaluated.
			item.Entries[i].Key = m.printed.text(item.Entries[i].Key)
		}
	}
	b.problems = append(b.problems, m.problems...)

	return value.Items, !ok || len(m.problems) > 0
}

func renderedName(path string) string { return path + " (rendered)" }

// numbersOfTemplates warns about an owner or group that a template printed as a number. The number
// is often an index by mistake, and would select another account.
func numbersOfTemplates(declared, properties document.Value) (warnings model.Problems) {
	for _, key := range []string{"owner", "group"} {
		text, _ := declared.Get(key)
		value, _ := properties.Get(key)
		isRendered := strings.HasSuffix(value.Pos.File, renderedName("")) || callsTemplate.MatchString(text.Text)
		if isRendered && !value.Secret && value.Text != "" && strings.Trim(value.Text, "0123456789") == "" {
			warnings.Add(value.Pos, "in Jet, `range x := list` sets x to the index; write `range _, x := list`",
				"the %s %s is a number that a template printed", key, value.Text)
		}
	}

	return warnings
}

// callsTemplate matches an expression that renders a template.
var callsTemplate = regexp.MustCompile(`\b(jet|template)\(`)

// list renders the list and reports its problems. For another node, missing values are not a
// problem.
func (b *build) list(ctx context.Context, seen *scope, path document.Value) (list document.Value, m marks, ok bool) {
	text, use, err := newTemplates(seen).jetFile(ctx, path.Text)
	m = marks{file: path.Text, lines: strings.Split(text, "\n"), printed: b.session.printed, use: use}
	if err == nil {
		list, err = readList(path.Text, text, b.session.opts.MaxBytes)
	}
	var problems model.Problems
	var bad *template.Error
	switch invalid := errors.As(err, &bad) && bad.Syntax; {
	case err == nil:
		// A list from incomplete data is not reliable.
		return list, m, !b.scope.broken
	case errors.As(err, &problems):
		for i := range problems {
			problems[i].Pos = m.position(problems[i].Pos)
		}
		if !b.scope.broken {
			b.problems = append(b.problems, problems...)
		}
	case errors.As(err, new(deferredError)):
		b.problems.Add(path.Pos, "", "`%s` must be known before the run: %s", keyJetFile, err)
	case !invalid && (b.scope.broken || b.session.tolerates()):
	case bad != nil:
		b.problems.Add(bad.Pos, expression.HintOf(err), "%s", bad.Message)
	default:
		f := b.session.failed(err)
		b.problems.Add(path.Pos, f.hint, "`%s`: %s", keyJetFile, f.message)
	}

	return document.Value{}, m, false
}

func readList(path, rendered string, limit int64) (document.Value, error) {
	value, problems := document.Read(renderedName(path), []byte(rendered), limit)
	if len(problems) == 0 && value.Kind != document.List && value.Kind != document.Null {
		problems.Add(value.Pos, "begin it with `- file:`", "%s must render a list of resources, not %s", path, value.Kind)
	}

	return value, problems.Err()
}

// marks marks the secrets in a rendered list, and corrects positions for the printed values.
type marks struct {
	file     string
	lines    []string
	printed  *printedValues
	use      template.Use
	problems model.Problems
}

func (m *marks) mark(v *document.Value) {
	v.Pos = m.position(v.Pos)
	if v.IsScalar() && m.printed.isSecret(v.Text) {
		v.Secret, v.Derived = true, true
	}
	for i := range v.Items {
		m.mark(&v.Items[i])
	}
	for i := range v.Entries {
		e := &v.Entries[i]
		e.Pos = m.position(e.Pos)
		if m.printed.isSecret(e.Key) {
			m.problem(e.Pos)
		}
		m.mark(&e.Value)
	}
}

// maxCorrected is the longest line in which positions are corrected. Correcting a position reads all
// earlier positions of its line.
const maxCorrected = 8 << 10

// position returns the position in the list after replacing tokens by values.
func (m *marks) position(pos model.Position) model.Position {
	if pos.Line == 0 || pos.Line > len(m.lines) || len(m.lines[pos.Line-1]) > maxCorrected || !m.printed.in(m.lines[pos.Line-1]) {
		return pos
	}
	line := []rune(m.lines[pos.Line-1])
	before := string(line[:min(max(pos.Column-1, 0), len(line))])
	pos.Column = utf8.RuneCountInString(m.printed.shown(before)) + 1

	return pos
}

func (m *marks) problem(pos model.Position) {
	m.problems.Add(pos, "print secrets as they are, in the values of properties", "the output of %s depends on a secret here, but names and keys are shown", m.file)
}

// printedValues are the values that a template printed into a document. A token replaces each value
// until the document was parsed as YAML and its expressions were evaluated. So a printed value is
// neither YAML nor an expression. Nil has no values.
type printedValues struct {
	// mark begins every token. A token is one word in YAML and a name in expressions.
	mark   string
	token  *regexp.Regexp
	values []printedValue
}

type printedValue struct {
	text   string
	secret bool
}

// newPrintedValues returns an empty collection with a random mark.
func newPrintedValues() *printedValues {
	mark := "V" + rand.Text()

	return &printedValues{mark: mark, token: regexp.MustCompile(mark + `x(\d+)x`)}
}

// plainText matches a text that means the same in YAML and in an expression.
var plainText = regexp.MustCompile(`^(-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false|)$`)

// print returns the token of a text, or the text itself if it needs no token.
func (p *printedValues) print(text string) string {
	if plainText.MatchString(text) {
		return text
	}

	return p.add(p.text(text), p.isSecret(text))
}

func (p *printedValues) hide(s model.Secret) string { return p.add(s.Reveal(), true) }

func (p *printedValues) add(text string, secret bool) string {
	p.values = append(p.values, printedValue{text, secret})

	return p.mark + "x" + strconv.Itoa(len(p.values)-1) + "x"
}

func (p *printedValues) in(text string) bool { return p != nil && strings.Contains(text, p.mark) }

// walk calls literal and value with the parts of a text, in order.
func (p *printedValues) walk(text string, literal, value func(string)) {
	if p.in(text) {
		for at := p.token.FindStringSubmatchIndex(text); at != nil; at = p.token.FindStringSubmatchIndex(text) {
			literal(text[:at[0]])
			i, _ := strconv.Atoi(text[at[2]:at[3]])
			value(p.values[i].text)
			text = text[at[1]:]
		}
	}
	literal(text)
}

func (p *printedValues) isSecret(text string) bool {
	found := false
	p.each(text, func(v printedValue) string {
		found = found || v.secret
		return ""
	})

	return found
}

func (p *printedValues) text(text string) string {
	return p.each(text, func(v printedValue) string { return v.text })
}

// shown replaces the tokens of a text by their values, with secrets redacted.
func (p *printedValues) shown(text string) string {
	return p.each(text, func(v printedValue) string {
		if v.secret {
			return model.Redacted
		}
		return v.text
	})
}

func (p *printedValues) each(text string, shown func(printedValue) string) string {
	if !p.in(text) {
		return text
	}

	return p.token.ReplaceAllStringFunc(text, func(token string) string {
		i, _ := strconv.Atoi(token[len(p.mark)+1 : len(token)-1])
		return shown(p.values[i])
	})
}

// problems replaces the tokens in problems, with secrets redacted.
func (p *printedValues) problems(problems model.Problems) model.Problems {
	for i := range problems {
		problems[i].Message, problems[i].Hint = p.shown(problems[i].Message), p.shown(problems[i].Hint)
	}

	return problems
}
