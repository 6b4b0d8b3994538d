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

// The names of functions in prepared templates. The prefix own distinguishes the functions write and
// render from the functions of the library, which use the disk and cannot be replaced.
const (
	own         = "__"
	namePrinted = own + "printed"
	nameInOrder = own + "in_order"
)

// prepare returns a template that calls the functions of the child, checks printed values and sorts
// mappings in ranges. The lines stay the same.
func (r *request) prepare(text string) (string, error) {
	if !strings.Contains(text, r.Left) {
		return text, nil
	}
	insertions, err := r.insertions(text)
	if err != nil {
		return "", err
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(insertions))) {
		text = text[:at] + insertions[at] + text[at:]
	}
	if !r.Go && strings.Contains(text, "range") {
		text = inOrder(r.Left, r.Right, text)
	}

	return text, nil
}

// insertions returns the insertions for a template by position: prefixes of function names, and a
// check of each printed value.
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
	// The library checks the names of functions.
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

// endOfAction returns the position after the last word of the Go action at a position.
func endOfAction(text, right string, at int) int {
	blank := quoted.ReplaceAllStringFunc(text[at:], func(s string) string { return strings.Repeat("_", len(s)) })
	action, _, _ := strings.Cut(blank, right)
	if strings.HasSuffix(action, " -") {
		action = strings.TrimSuffix(action, "-")
	}

	return at + len(strings.TrimRight(action, " \t\r\n"))
}

// printedByJet returns its last argument, a printed value. It panics if the value is or contains null.
func printedByJet(args jet.Arguments) reflect.Value {
	v := args.Get(2)
	if err := template.CheckJet(args.Get(0).String(), v); err != nil {
		// The library does not report the line of a call.
		const jetError = "Jet Runtime Error"
		panic(fmt.Errorf("%s (\"string\":%v): %w", jetError, args.Get(1), err))
	}

	return v
}

// inOrder wraps the operand of each range of a Jet template in a call of a function that sorts
// mappings. Jet visits mappings in a random order, and has no option for this.
func inOrder(left, right, text string) string {
	// The operand may contain the right delimiter in a string. It does not begin with the delimiter: then
	// the operand is missing.
	first := "[^\"'`\\s" + regexp.QuoteMeta(string([]rune(right)[:1])) + "]"
	operand := "(" + first + "(?:\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|[^\"'`])*?)"
	ranges := regexp.MustCompile(`(?s)(` + regexp.QuoteMeta(left) + `(?:- )?\s*range\s+(?:[\w.]+\s*(?:,\s*\w+\s*)?:?=\s*)?)` + operand + `(\s*(?: -)?` + regexp.QuoteMeta(right) + `)`)

	return ranges.ReplaceAllString(text, "${1}"+nameInOrder+"(${2})${3}")
}

var (
	// placed matches an error of the library with a line. The library names every template "string".
	placed = regexp.MustCompile(`(?s)^(?:parsing template string failed: )?(?:template: /?string:|Jet Runtime Error \("/?string":)(\d+)(?::\d+)?\)?: (?:executing "[^"]*" at )?(.*)$`)
	// checked matches the call in an error of a check of a printed value.
	checked = regexp.MustCompile(`(?s)^<` + namePrinted + ` .*?>: error calling ` + namePrinted + `: `)
	// unknown matches an error of Jet that contains the values of all variables.
	unknown = regexp.MustCompile(`(?s)identifier "(\w+)" not available.*`)
)

// place returns an error of the library with the name and the line of the template.
func place(name, text, message string) string {
	message = strings.NewReplacer(own+"write", "write", own+"render", "render").Replace(message)
	message = unknown.ReplaceAllString(message, "unknown name `$1`")
	if found := placed.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("%s:%s: %s", name, found[1], checked.ReplaceAllString(found[2], ""))
	}
	// Jet does not report the line of a function that fails.
	function, _, _ := strings.Cut(message, ":")
	calls := func(line string) bool { return strings.Contains(line, function) }
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, calls)
	if at < 0 || slices.ContainsFunc(lines[at+1:], calls) {
		return name + ": " + message
	}

	return fmt.Sprintf("%s:%d: %s", name, at+1, message)
}
