package manifest

import (
	"crypto/rand"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

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

// hide returns the token of a secret.
func (p *printedValues) hide(s model.Secret) string { return p.add(s.Reveal(), true) }

func (p *printedValues) add(text string, secret bool) string {
	p.values = append(p.values, printedValue{text, secret})

	return p.mark + "x" + strconv.Itoa(len(p.values)-1) + "x"
}

// in reports whether a text contains tokens.
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

// isSecret reports whether a text contains the token of a secret.
func (p *printedValues) isSecret(text string) bool {
	found := false
	p.each(text, func(v printedValue) string {
		found = found || v.secret
		return ""
	})

	return found
}

// text replaces the tokens of a text by their values.
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
