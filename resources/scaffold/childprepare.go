package scaffold

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/CloudyKit/jet/v6"

	"github.com/musterfleet/muster/resources/template"
)

// prepare returns a template that calls own functions, checks printed values, and ranges in order. Its
// error is that of the library.
func (r *request) prepare(text string) (string, error) {
	if strings.Contains(text, r.Left) {
		insertions, err := r.insertions(text)
		if err != nil {
			return "", err
		}
		for _, at := range slices.Backward(slices.Sorted(maps.Keys(insertions))) {
			text = text[:at] + insertions[at] + text[at:]
		}
	}
	if !r.Go && strings.Contains(text, "range") {
		text = inOrder(r.Left, r.Right)(text)
	}

	return text, nil
}

// insertions returns the text to insert into a template, by position: a prefix for the functions
// of the library, and a check of each printed value.
func (r *request) insertions(text string) (map[int]string, error) {
	out := map[int]string{}
	call := func(name string, pos int) {
		if name == "write" || name == "render" {
			out[pos] += own
		}
	}
	if !r.Go {
		t, err := jet.NewSet(jet.NewInMemLoader(), jet.WithDelims(r.Left, r.Right)).Parse("string", text)
		if err != nil {
			return nil, err
		}
		template.Visit(t.Root, func(node any) {
			switch n := node.(type) {
			case *jet.IdentifierNode:
				call(n.Ident, int(n.Pos))
			case *jet.ActionNode:
				if source := template.PrintedByJet(n); source != "" && n.Set == nil {
					out[int(n.Pos)] = fmt.Sprintf("%s: %q, %d, ", namePrinted, source, n.Line) + out[int(n.Pos)]
				}
			}
		})
		return out, nil
	}
	all, t := map[string]*parse.Tree{}, parse.New("string")
	// The library knows the functions.
	t.Mode = parse.SkipFuncCheck
	_, err := t.Parse(text, r.Left, r.Right, all)
	for _, t := range all {
		template.Visit(t.Root, func(node any) {
			switch n := node.(type) {
			case *parse.IdentifierNode:
				call(n.Ident, int(n.Pos))
			case *parse.ActionNode:
				if source := template.PrintedByGo(n); source != "" {
					out[endOfAction(text, r.Right, int(n.Pos))] = fmt.Sprintf(" | %s %q", namePrinted, source)
				}
			}
		})
	}

	return out, err
}

// quoted matches the strings and characters of an action.
var quoted = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`")

// endOfAction returns the position behind the last word of the Go action that includes a position.
func endOfAction(text, right string, at int) int {
	blank := quoted.ReplaceAllStringFunc(text[at:], func(s string) string { return strings.Repeat("_", len(s)) })
	action, _, _ := strings.Cut(blank, right)
	if strings.HasSuffix(action, " -") {
		action = strings.TrimSuffix(action, "-")
	}

	return at + len(strings.TrimRight(action, " \t\r\n"))
}

// namePrinted is the function that checks each printed value.
const namePrinted = own + "printed"

// printedByGo returns a printed value, or an error if it is or contains null.
func printedByGo(source string, v any) (any, error) { return v, template.CheckGo(source, v) }

// printedByJet returns its last argument, a printed value. It panics if that is or contains null.
func printedByJet(args jet.Arguments) reflect.Value {
	v := args.Get(2)
	if err := template.CheckJet(args.Get(0).String(), v); err != nil {
		// The library does not report where a function was called.
		const jetError = "Jet Runtime Error"
		panic(fmt.Errorf("%s (\"string\":%v): %w", jetError, args.Get(1), err))
	}

	return v
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
