package targets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/resources/document"
)

// Error is a problem of an expression.
type Error struct {
	Expression string
	// Line and Column are the position from 1, or 0 for the whole expression.
	Line, Column int
	Message      string
	// Hint is the remedy.
	Hint string
	// what describes the kind of expression, see vocabulary.
	what string
	// from is the offset in characters from 0.
	from int
}

// maxShown is the maximum number of characters of an expression in an error.
const maxShown = 200

// Error returns the expression, the position, the problem and the remedy.
func (e *Error) Error() string {
	text := cmp.Or(e.what, whatTarget) + " " + quote(e.Expression)
	if strings.Contains(e.Expression, "\n") && e.Line > 0 {
		text += fmt.Sprintf(", line %d", e.Line)
	}
	if e.Column > 0 {
		text += fmt.Sprintf(", column %d", e.Column)
	}
	text += ": " + e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}

	return text
}

// locate sets the expression, the line and the column.
func (e *Error) locate(text string) {
	e.Expression, e.Line, e.Column = text, 1, 1
	for i, r := range []rune(text) {
		switch {
		case i >= e.from:
			return
		case r == '\n':
			e.Line, e.Column = e.Line+1, 1
		default:
			e.Column++
		}
	}
}

// quote returns a text in backquotes and shortens a long one.
func quote(text string) string {
	if utf8.RuneCountInString(text) > maxShown {
		text = string([]rune(text)[:maxShown]) + "…"
	}

	return "`" + text + "`"
}

// explain translates an error of the expression language.
func explain(text string, err error) *Error {
	out := &Error{Expression: text, Message: err.Error()}
	if at := asFileError(err); at != nil {
		out.Line, out.Column, out.Message = at.Line, at.Column+1, at.Message
	}
	out.Message = plain(out.Message)
	result, isNoCondition := strings.CutPrefix(out.Message, "expected bool, but got ")
	switch {
	case strings.TrimSpace(text) == "":
		out.Line, out.Column, out.Message, out.Hint = 0, 0, "it is empty", `write a condition, such as state == "failed"`
	case isNoCondition:
		out.Message, out.Hint = "its result is "+result+", not true or false", `compare it, such as state == "failed"`
	case strings.Contains(out.Message, `Operator("=")`) && strings.Contains(text, "=~"):
		out.Message, out.Hint = "unexpected =~", `write matches to compare with a pattern, such as node matches "^web"`
	case strings.Contains(out.Message, `Operator("=")`):
		out.Message, out.Hint = "unexpected =", "write == to compare"
	case strings.HasPrefix(out.Message, "unexpected token EOF"):
		out.Message = "it is not complete"
	case strings.HasPrefix(out.Message, "type Manifest has no field"):
		out.Hint = "a manifest has status, revision and outcome"
	case strings.Contains(out.Message, "mismatched types a list and") && strings.Contains(text, "groups"):
		out.Hint = `write group("web")`
	case strings.Contains(out.Message, "mismatched types") && strings.Contains(out.Message, "a duration"):
		out.Hint = hintDuration
	case strings.Contains(out.Message, "mismatched types") && strings.Contains(out.Message, "a time"):
		out.Hint = hintTime
	}

	return out
}

// hintForName returns the remedy for an unknown name.
func (v vocabulary) hintForName(name string) string {
	if hint := document.DidYouMean(name, append(slices.Clone(v.names), functions()...)); hint != "" && len(name) > 3 && name[0] != '$' {
		return hint
	}

	return fmt.Sprintf("text needs quotes: %q; the names are %s", name, strings.Join(v.names, ", "))
}

// hintForFunction lists the functions.
func (v vocabulary) hintForFunction() string {
	return "the functions are " + strings.Join(append(slices.Clone(v.functions), functions()...), ", ")
}

// plain returns a message of the language on one line, without the types of Go.
func plain(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if of, ok := strings.CutPrefix(message, "invalid operation: bool("); ok {
		message = "its result is " + strings.TrimSuffix(of, ")") + ", not true or false"
	}

	return strings.TrimSpace(typeWords.Replace(message))
}

// typeWords replaces the names of Go types with plain words.
var typeWords = strings.NewReplacer(
	"interface conversion: interface {} is ", "a value is ",
	"map[string]interface {}", "a mapping", "map[string]string", "a mapping", "[]interface {}", "a list", "[]string", "a list", "interface {}", "any value",
	"targets.Manifest", "Manifest", "time.Duration", "a duration", "time.Time", "a time", "float64", "a number", "uint64", "a number", "<nil>", "nothing",
)

// kind describes the type of a value.
func kind(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case float64, int, int64, uint64:
		return "a number"
	case []any, []string:
		return "a list"
	case map[string]any, map[string]string:
		return "a mapping"
	case *Package:
		return "a package"
	case Manifest:
		return "a manifest"
	case bool:
		return "true or false"
	case time.Time:
		return "a time"
	case time.Duration:
		return "a duration"
	default:
		return fmt.Sprintf("%T", v)
	}
}
