package targets

import (
	"errors"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Bounds of an expression.
const (
	// maxLength is how many bytes an expression can have: some hundreds of node names.
	maxLength = 8 << 10
	// maxParts is how many names, values and operators it can have.
	maxParts = 1000
)

// Expression is a target expression that compiled.
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

// Compile compiles an expression, or returns an *Error, which says what is wrong with
// it, where, and what to write instead.
func Compile(text string, words Words) (*Expression, error) {
	return compile(text, ofNodes(words))
}

// compile compiles an expression over what a vocabulary has names for.
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

// options are those of every expression over an env.
func options(env any) []expr.Option {
	all := append([]expr.Option{expr.Env(env), expr.AsBool(), expr.MaxNodes(maxParts), expr.DisableAllBuiltins()}, safe()...)
	for _, name := range functions() {
		all = append(all, expr.EnableBuiltin(name))
	}

	return all
}

// String returns the expression as it was written.
func (e *Expression) String() string { return e.text }

// Mentions returns the names in the expression that a fleet may have or not.
func (e *Expression) Mentions() Mentions { return e.mentions }

// Warnings returns probable mistakes in the expression.
func (e *Expression) Warnings() []string { return e.warnings }

// UsesStatus reports whether the expression depends on the status of manifests: what
// is assigned must be known.
func (e *Expression) UsesStatus() bool {
	return e.used["state"] || e.used["manifest"] || e.used["reason"]
}

// UsesReason reports whether the expression depends on why a node is not ok.
func (e *Expression) UsesReason() bool { return e.used["reason"] }

// UsesFacts reports whether the expression may depend on facts.
func (e *Expression) UsesFacts() bool { return e.used["facts"] }

// UsesInventory reports whether the expression may depend on installed packages.
func (e *Expression) UsesInventory() bool { return e.used[namePackage] }

// UsesOnly reports whether the expression names nothing but some names.
func (e *Expression) UsesOnly(names ...string) bool {
	for name := range e.used {
		if !slices.Contains(names, name) {
			return false
		}
	}

	return true
}

// asFileError returns the place that the language gives an error, nil for none.
func asFileError(err error) *file.Error {
	var at *file.Error
	if errors.As(err, &at) {
		return at
	}

	return nil
}
