// Package targets compiles target expressions, which select nodes, results and packages. It type-checks an
// expression once, evaluates it for each node within limits, and finds the names that the fleet does not have.
package targets

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Limits of an expression.
const (
	// maxLength is the maximum length of an expression in bytes: some hundred node names.
	maxLength = 8 << 10
	// maxParts is the maximum number of names, values and operators.
	maxParts = 1000
)

// Expression is a compiled target expression.
type Expression struct {
	text    string
	program *vm.Program
	used    map[string]bool

	// Strict makes Selector return warnings as an error.
	Strict bool

	mentions Mentions
	// packages are the names of packages in the expression.
	packages []string
	warnings []string
}

// Compile compiles an expression. The error is an *Error with the position, the problem and the remedy.
func Compile(text string) (*Expression, error) {
	return compile(text, vocabulary{what: whatTarget, env: env{}, values: nodeValues, words: map[Space]words{
		SpaceState: {"state", texts(fleet.NodeStatuses())},
		SpaceStatus: {"the status of a manifest", texts([]fleet.Status{
			fleet.StatusUpToDate, fleet.StatusFailed, fleet.StatusOverridden, fleet.StatusNotApplicable, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusUnassigned,
		})},
		SpaceOutcome: {"the outcome of a manifest", texts(append(outcomes[:], model.OutcomeRefused))},
	}})
}

// outcomes are the outcomes of resources.
var outcomes = [...]model.Outcome{
	model.OutcomeStable, model.OutcomeChanged, model.OutcomeRefreshed, model.OutcomeFailed, model.OutcomeSkipped, model.OutcomeNoop, model.OutcomeUnmet, model.OutcomeNotRun,
}

func texts[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}

	return out
}

// compile compiles an expression with the names of a vocabulary.
func compile(text string, v vocabulary) (*Expression, error) {
	if len(text) > maxLength {
		return nil, &Error{Expression: text, Message: "the expression is too long", Hint: "put the nodes into a group", what: v.what}
	}
	v.names, v.functions = namesIn(v.env), namesIn(v.env, reflect.Func)
	p := &patcher{vocabulary: v, used: map[string]bool{}}
	program, err := expr.Compile(text, append(options(v.env), expr.Patch(p))...)
	var wrong *Error
	switch {
	case p.refused != nil:
		wrong = p.refused
		wrong.locate(text)
	case err != nil:
		wrong = explain(text, err)
	default:
		found := read(text, v.values)
		return &Expression{text: text, program: program, used: p.used, mentions: found, packages: found.Of(SpacePackage), warnings: append(p.warnings, v.unknownWords(found)...)}, nil
	}
	wrong.what = v.what

	return nil, wrong
}

// options returns the compiler options for expressions over an env.
func options(env any) []expr.Option {
	all := append([]expr.Option{expr.Env(env), expr.AsBool(), expr.MaxNodes(maxParts), expr.DisableAllBuiltins()}, safe()...)
	for _, name := range functions() {
		all = append(all, expr.EnableBuiltin(name))
	}

	return all
}

// String returns the source of the expression.
func (e *Expression) String() string { return e.text }

// Mentions returns the names of the fleet in the expression.
func (e *Expression) Mentions() Mentions { return e.mentions }

// Warnings returns probable mistakes in the expression.
func (e *Expression) Warnings() []string { return e.warnings }

// UsesStatus reports whether the expression depends on the status of manifests, which needs the assignments.
func (e *Expression) UsesStatus() bool {
	return e.used["state"] || e.used["manifest"] || e.used["reason"]
}

// UsesReason reports whether the expression depends on the reason why a node is not ok.
func (e *Expression) UsesReason() bool { return e.used["reason"] }

// UsesFacts reports whether the expression may depend on facts.
func (e *Expression) UsesFacts() bool { return e.used["facts"] }

// UsesInventory reports whether the expression may depend on installed packages.
func (e *Expression) UsesInventory() bool { return e.used[namePackage] }

// UsesOnly reports whether the expression uses only some names.
func (e *Expression) UsesOnly(names ...string) bool {
	for name := range e.used {
		if !slices.Contains(names, name) {
			return false
		}
	}

	return true
}

// whatTarget is the name of target expressions in messages.
const whatTarget = "target expression"

// vocabulary is the language over one kind of thing.
type vocabulary struct {
	// what is the name of the kind of expression.
	what string
	// env has the names that an expression may use, with their types.
	env any
	// names and functions are the names in env, and those of its functions.
	names, functions []string
	// values has the identifiers that are names of the fleet.
	values map[string]value
	// words has the names of spaces in messages, and their fixed words.
	words map[Space]words
	// scheme is the name with the version scheme of the name version; empty if it has none.
	scheme string
}

// namesIn returns the names that users may write, in the order of an env: all, or those of some kinds.
func namesIn(env any, kinds ...reflect.Kind) (out []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(env)) {
		name := f.Tag.Get("expr")
		if name != "" && !strings.HasPrefix(name, "__") && (len(kinds) == 0 || slices.Contains(kinds, f.Type.Kind())) {
			out = append(out, name)
		}
	}

	return out
}

// wordsOf returns the fixed words of the name that a node of the tree is.
func (v vocabulary) wordsOf(n ast.Node) words {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return v.words[v.values[n.Value].space]
	case *ast.MemberNode:
		if property, ok := n.Property.(*ast.StringNode); ok && isCallOf(n.Node, "manifest") {
			return v.words[manifestValues[property.Value].space]
		}
	}

	return words{}
}

// words are the fixed words of a name.
type words struct {
	name string
	all  []string
}

// unknownWords returns warnings about the words in an expression that a name never is.
func (v vocabulary) unknownWords(in Mentions) (out []string) {
	const most = 10
	for _, n := range in.Names {
		if w, is := v.words[n.Space]; is && len(out) < most && !slices.ContainsFunc(w.all, n.Is) {
			out = append(out, fmt.Sprintf("%s is never %s; %s", w.name, quote(n.Text), hintForWord(n.Text, w.all)))
		}
	}

	return out
}

func hintForWord(word string, known []string) string {
	if hint := document.DidYouMean(word, known); hint != "" {
		return hint
	}

	return "it is one of " + strings.Join(known, ", ")
}

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

func explain(text string, err error) *Error {
	out := &Error{Expression: text, Message: err.Error()}
	if at, is := errors.AsType[*file.Error](err); is {
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
