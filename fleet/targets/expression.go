package targets

import (
	"errors"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
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

	// Strict makes fleet.Selector return warnings as an error.
	Strict bool

	mentions Mentions
	// packages are the names of packages in the expression.
	packages []string
	warnings []string
}

// Compile compiles an expression. The error is an *Error with the position, the problem and the remedy.
func Compile(text string, words Words) (*Expression, error) {
	return compile(text, ofNodes(words))
}

// compile compiles an expression with the names of a vocabulary.
func compile(text string, v vocabulary) (*Expression, error) {
	if len(text) > maxLength {
		return nil, &Error{Expression: text, Message: "the expression is too long", Hint: "put the nodes into a group", what: v.what}
	}
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
		found := v.mentions(text)
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

// asFileError returns the error of the expression language in err, nil for none.
func asFileError(err error) *file.Error {
	var at *file.Error
	if errors.As(err, &at) {
		return at
	}

	return nil
}
