// Package printed keeps the values that a template prints out of YAML and of
// expressions: tokens take their place until both were read.
package printed

import (
	"crypto/rand"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Values are the values that a template printed into a document. Each has a
// token, so that it is neither read as YAML nor as an expression: it is put in
// after both. Nil has none.
type Values struct {
	// mark begins every token, which is one word to YAML and a name to expressions.
	mark   string
	token  *regexp.Regexp
	values []value
}

type value struct {
	text   string
	secret bool
}

// New returns an empty collection with tokens of its own.
func New() *Values {
	mark := "V" + rand.Text()

	return &Values{mark: mark, token: regexp.MustCompile(mark + `x(\d+)x`)}
}

// plain matches what means the same as text, in YAML and in an expression.
var plain = regexp.MustCompile(`^(-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false|)$`)

// Print returns the token of a text, or the text where it needs none.
func (p *Values) Print(text string) string {
	if plain.MatchString(text) {
		return text
	}

	return p.add(p.Text(text), p.IsSecret(text))
}

// Hide returns the token of a secret.
func (p *Values) Hide(s model.Secret) string { return p.add(s.Reveal(), true) }

func (p *Values) add(text string, secret bool) string {
	p.values = append(p.values, value{text, secret})

	return p.mark + "x" + strconv.Itoa(len(p.values)-1) + "x"
}

// In reports whether a text has tokens.
func (p *Values) In(text string) bool { return p != nil && strings.Contains(text, p.mark) }

// Walk calls literal and value with the parts of a text, in order.
func (p *Values) Walk(text string, literal, value func(string)) {
	if p.In(text) {
		for at := p.token.FindStringSubmatchIndex(text); at != nil; at = p.token.FindStringSubmatchIndex(text) {
			literal(text[:at[0]])
			i, _ := strconv.Atoi(text[at[2]:at[3]])
			value(p.values[i].text)
			text = text[at[1]:]
		}
	}
	literal(text)
}

// IsSecret reports whether a text has the token of a secret.
func (p *Values) IsSecret(text string) bool {
	found := false
	p.each(text, func(v value) string {
		found = found || v.secret
		return ""
	})

	return found
}

// Text returns a text with the values in it.
func (p *Values) Text(text string) string {
	return p.each(text, func(v value) string { return v.text })
}

// Shown returns a text with the values in it that may be shown.
func (p *Values) Shown(text string) string {
	return p.each(text, func(v value) string {
		if v.secret {
			return model.Redacted
		}
		return v.text
	})
}

func (p *Values) each(text string, shown func(value) string) string {
	if !p.In(text) {
		return text
	}

	return p.token.ReplaceAllStringFunc(text, func(token string) string {
		i, _ := strconv.Atoi(token[len(p.mark)+1 : len(token)-1])
		return shown(p.values[i])
	})
}

// Problems returns problems as they may be shown.
func (p *Values) Problems(problems model.Problems) model.Problems {
	for i := range problems {
		problems[i].Message, problems[i].Hint = p.Shown(problems[i].Message), p.Shown(problems[i].Hint)
	}

	return problems
}
