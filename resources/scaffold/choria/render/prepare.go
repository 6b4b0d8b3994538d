package render

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/CloudyKit/jet/v6"

	"github.com/musterfleet/muster/resources/template"
)

// prepare returns a template that calls own functions, and ranges in order. Its
// error is that of the library.
func (r *Request) prepare(text string) (string, error) {
	if strings.Contains(text, "write") || strings.Contains(text, "render") {
		calls, err := r.calls(text)
		if err != nil {
			return "", err
		}
		for _, at := range slices.Backward(slices.Sorted(slices.Values(calls))) {
			text = text[:at] + own + text[at:]
		}
	}
	if !r.Go && strings.Contains(text, "range") {
		text = inOrder(r.Left, r.Right)(text)
	}

	return text, nil
}

// calls returns where a template calls the functions of the library.
func (r *Request) calls(text string) (at []int, err error) {
	found := func(name string, pos int) {
		if name == "write" || name == "render" {
			at = append(at, pos)
		}
	}
	if !r.Go {
		t, err := jet.NewSet(jet.NewInMemLoader(), jet.WithDelims(r.Left, r.Right)).Parse("string", text)
		if err != nil {
			return nil, err
		}
		template.Visit(t.Root, func(node any) {
			if n, is := node.(*jet.IdentifierNode); is {
				found(n.Ident, int(n.Pos))
			}
		})
		return at, nil
	}
	all, t := map[string]*parse.Tree{}, parse.New("string")
	// The library knows the functions.
	t.Mode = parse.SkipFuncCheck
	_, err = t.Parse(text, r.Left, r.Right, all)
	for _, t := range all {
		template.Visit(t.Root, func(node any) {
			if n, is := node.(*parse.IdentifierNode); is {
				found(n.Ident, int(n.Pos))
			}
		})
	}

	return at, err
}

// nameInOrder is the function that ranges of Jet templates go through.
const nameInOrder = own + "in_order"

// inOrder passes whatever a Jet template ranges over through a function. Jet
// visits mappings in random order, so a file made of one would always differ,
// and it offers no hook.
func inOrder(left, right string) func(text string) string {
	// A string may hold the right delimiter. Nothing begins with it, not even an
	// expression that is missing.
	first := "[^\"'`\\s" + regexp.QuoteMeta(string([]rune(right)[:1])) + "]"
	expression := "(" + first + "(?:\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|[^\"'`])*?)"
	ranges := regexp.MustCompile(`(?s)(` + regexp.QuoteMeta(left) + `(?:- )?\s*range\s+(?:[\w.]+\s*(?:,\s*\w+\s*)?:?=\s*)?)` + expression + `(\s*(?: -)?` + regexp.QuoteMeta(right) + `)`)

	return func(text string) string { return ranges.ReplaceAllString(text, "${1}"+nameInOrder+"(${2})${3}") }
}
