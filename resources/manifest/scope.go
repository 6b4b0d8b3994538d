package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// phase is how far the data are when an expression is evaluated.
type phase uint8

const (
	// InData is within the data themselves, where Data is not known yet.
	inData phase = iota
	// InResources is within resources, where the data are known.
	inResources
)

// Scope is what expressions see at one time. It is used by one goroutine.
type scope struct {
	*evaluator
	phase   phase
	machine vm.VM
	// program is the running expression.
	program *expression.Program
	// known are the names, with secrets as plain text.
	known map[string]any
	// data are those of the document, with their secrets marked.
	data any
	// Reveal returns the text that expressions see for a secret.
	Reveal func(model.Secret) string
	// text returns the text of a secret.
	text func(model.Secret) string
	// nesting limits texts that render other texts.
	nesting nesting
	// secret reports whether the data hold any.
	secret bool
	// outputs are those of what ran before; nil while nothing runs.
	outputs resource.Outputs
	// Broken reports whether the data have problems of their own: their consequences are not reported.
	Broken bool
	// work is what the loops of the evaluation came to so far.
	work int64
	// used reports whether a secret came out of a function or a template since it was reset.
	used bool
	// At is the position of the current expression.
	At model.Position
	// Quiet drops warnings, for an excluded resource.
	Quiet bool
	// noFact reports whether lookup missed a fact since the last reset.
	noFact bool
}

// LateError is an expression that can only be evaluated when resources have had
// their turns: they are given by the function that takes something of them.
type deferredError struct{ waits []resource.Reference }

// Error names the resource that must run first.
func (e deferredError) Error() string { return e.waits[0].Ref.String() + " must have run before" }

// outputsOf returns the error of an expression that needs the outputs of resources.
func outputsOf(refs ...model.Ref) (out deferredError) {
	for _, ref := range refs {
		out.waits = append(out.waits, resource.Reference{Ref: ref, Property: expression.NameOutputs})
	}

	return out
}

// late returns the error of a function that takes something of a resource.
func waitFor(function string, ref model.Ref) deferredError {
	return deferredError{[]resource.Reference{{Ref: ref, Property: function}}}
}

// Scope makes what expressions see. data may hold model.Secret.
func (w *evaluator) Scope(ctx context.Context, p phase, data map[string]any, outputs resource.Outputs) *scope {
	return w.ScopeWith(ctx, p, data, outputs, model.Secret.Reveal)
}

// ScopeWith is scope with a text of one's own for secrets.
func (w *evaluator) ScopeWith(ctx context.Context, p phase, data map[string]any, outputs resource.Outputs, text func(model.Secret) string) *scope {
	sc := &scope{evaluator: w, phase: p, data: data, secret: template.Holds(data), outputs: outputs, text: text}
	sc.Reveal = func(secret model.Secret) string {
		w.Learn(secret)
		return text(secret)
	}
	sc.known = sc.names(ctx)
	sc.known[expression.NameStep] = func(v any) (any, error) { return sc.step(ctx, v) }

	return sc
}

// plain returns what a function found, noting whether there is a secret in it.
func (sc *scope) plain(v any) any {
	sc.used = sc.used || template.Holds(v)

	return template.Reveal(v, sc.Reveal)
}

// TakeUsed reports whether a secret came out of a function since it was last called.
func (sc *scope) TakeUsed() bool {
	used := sc.used
	sc.used = false

	return used
}

// failure is an expression without a value.
type failure struct {
	Message, Hint string
	// late are the resources to wait for; then it is no failure.
	waits []resource.Reference
	// missing is a file that had to be read and is not there.
	missing string
	// known reports whether it was reported already.
	known bool
	// sure reports whether it fails on every node: a template that is not valid.
	sure bool
}

// hiddenMessage replaces an error that may quote a secret.
const hiddenMessage = "it uses a secret, so its error is not shown"

// Run evaluates an expression. On success f is nil. secret reports whether the
// Value depends on a secret: all of it does when the expression uses one.
func (sc *scope) Run(ctx context.Context, p *expression.Program, extra map[string]any) (v any, secret bool, f *failure) {
	if p.Message != "" {
		return nil, false, &failure{Message: p.Message, Hint: p.Hint}
	}
	sc.noteData(p.DataPaths...)
	v, secret, err := sc.evaluate(ctx, p, extra)
	var late deferredError
	switch {
	case errors.As(err, &late):
		return nil, false, &failure{waits: late.waits}
	case err != nil && secret:
		f = sc.Failed(err)
		f.Message, f.Hint = hiddenMessage, ""
		return nil, true, f
	}

	return v, secret, sc.Failed(err)
}

// evaluate is Run for a valid expression; its error may be a LateError.
func (sc *scope) evaluate(ctx context.Context, p *expression.Program, extra map[string]any) (v any, secret bool, err error) {
	switch {
	case len(p.Refs) > 0 && sc.phase == inData:
		return nil, false, errNoOutputs
	case p.Names[expression.NameData] && sc.phase == inData:
		return nil, false, errNoData
	case len(p.Refs) > 0 && sc.outputs == nil:
		return nil, false, outputsOf(p.Refs...)
	}
	sc.used, sc.noFact = false, false
	v, err = sc.call(ctx, p, extra)
	var late deferredError
	if errors.As(err, &late) {
		return nil, false, deferredError{append(late.waits, outputsOf(p.Refs...).waits...)}
	}

	return v, sc.used || sc.secret && sc.uses(p.Node()), err
}

// call runs a program with the names it needs.
func (sc *scope) call(ctx context.Context, p *expression.Program, extra map[string]any) (any, error) {
	with := sc.known
	if p.Names[expression.NameFacts] {
		facts, err := sc.getFacts(ctx)
		if err != nil {
			return nil, fmt.Errorf("facts: %w", err)
		}
		with[expression.NameFacts] = facts
	}
	for k, v := range extra {
		with[k] = v
	}
	sc.work, sc.program = 0, p
	v, err := sc.machine.Run(p.Program, with)
	if err == nil && v == nil {
		if path, known, is := p.Missing(with); is {
			return nil, expression.WithHint(fmt.Errorf("`%s` is not set", path), cmp.Or(sc.outsideHint(path), missingHint(path, known, " ?? nil")))
		}
	}
	if path, key, known, is := p.MissingAt(err, with); is {
		return nil, expression.WithHint(fmt.Errorf("`%s` is not set", path), cmp.Or(sc.outsideHint(path), missingHint(path, known, "?."+key)))
	}
	if message, hint, is := p.Misread(err, with); is {
		return nil, expression.WithHint(errors.New(message), hint)
	}

	return v, err
}

// lacksFact reports whether the last program failed or returned null because a fact is missing.
// gaveNothing reports whether it returned null.
func (sc *scope) lacksFact(ctx context.Context, p *expression.Program, gaveNothing bool) bool {
	if sc.noFact {
		return true
	}
	if !p.Names[expression.NameFacts] {
		return false
	}
	facts, err := sc.getFacts(ctx)

	return err == nil && (gaveNothing || p.Lacks(expression.NameFacts, facts))
}

// maxWork is how many bytes the loops of one evaluation may come to; a turn
// counts for stepCost and for the text or list it returns.
const (
	maxWork  = 256 << 20
	stepCost = 64
)

var errTooMuchWork = expression.WithHint(errors.New("it does too much work"), "use join() to make a text of a list, or make the value elsewhere")

// step counts a turn of a loop and passes on its value.
func (sc *scope) step(ctx context.Context, v any) (any, error) {
	sc.work += stepCost
	size := int64(0)
	if r := reflect.ValueOf(v); r.IsValid() && (r.Kind() == reflect.String || r.Kind() == reflect.Slice) {
		size = int64(r.Len())
	}
	sc.work += size
	if sc.work > maxWork || size > sc.Opts.MaxBytes {
		return nil, errTooMuchWork
	}

	return v, context.Cause(ctx)
}

// mark marks what depends on a secret in the value of an expression: all of it
// when the expression uses one, but the values of a literal mapping each by
// what they are made from.
func (sc *scope) mark(v *document.Value, node ast.Node) {
	literal, is := node.(*ast.MapNode)
	if !is || v.Kind != document.Map {
		if sc.uses(node) {
			markAll(v)
		}
		return
	}
	for _, each := range literal.Pairs {
		pair, _ := each.(*ast.PairNode)
		key, constant := pair.Key.(*ast.StringNode)
		i := slices.IndexFunc(v.Entries, func(e document.Entry) bool { return constant && e.Key == key.Value })
		if i < 0 {
			markAll(v)
			return
		}
		sc.mark(&v.Entries[i].Value, pair.Value)
	}
}

// uses reports whether an expression names a secret of the data, a mapping or
// list that holds one, or all that there is, or calls what returned one.
func (sc *scope) uses(node ast.Node) bool {
	found := expression.SourcesOf(node)
	for _, path := range found.Paths {
		at := sc.data
		for _, key := range path {
			at = template.Key(at, key)
		}
		if template.Holds(at) {
			return true
		}
	}

	return found.Calls && sc.used || found.All && sc.secret
}

// markAll marks every scalar of v as one that came of a secret.
func markAll(v *document.Value) {
	v.EachScalar(func(s *document.Value) { s.Secret, s.Derived = true, true })
}
