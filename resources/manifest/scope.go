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

// phase is the state of the data while an expression is evaluated.
type phase uint8

const (
	// inData is within the data, where Data is unknown.
	inData phase = iota
	// inResources is within resources, where the data are known.
	inResources
)

// scope contains what expressions can use. One goroutine uses it.
type scope struct {
	*evaluator
	phase   phase
	machine vm.VM
	// program is the running expression.
	program *expression.Program
	// element is the element of each that expressions see, or nil.
	element *element
	// known are the names that expressions can use, with secrets as plain text.
	known map[string]any
	// data are the data of the document, with secrets marked.
	data any
	// reveal returns the text that expressions see for a secret.
	reveal func(model.Secret) string
	// text returns the text of a secret.
	text func(model.Secret) string
	// nesting limits texts that render other texts.
	nesting nesting
	// secret reports whether the data contain secrets.
	secret bool
	// outputs are the outputs of the resources that ran; nil before the run.
	outputs resource.Outputs
	// broken reports whether the data have problems. Their consequences are not reported.
	broken bool
	// work is the cost of the loops so far.
	work int64
	// used reports whether a function or template returned a secret since the last reset.
	used bool
	// at is the position of the current expression.
	at model.Position
	// quiet drops warnings, for an excluded resource.
	quiet bool
	// noFact reports whether lookup missed a fact since the last reset.
	noFact bool
}

// deferredError is the error of an expression that needs other resources to run first.
type deferredError struct{ waits []resource.Reference }

// Error names the resource that must run first.
func (e deferredError) Error() string { return e.waits[0].Ref.String() + " must run first" }

func outputsOf(refs ...model.Ref) (out deferredError) {
	for _, ref := range refs {
		out.waits = append(out.waits, resource.Reference{Ref: ref, Property: expression.NameOutputs})
	}

	return out
}

func waitFor(function string, ref model.Ref) deferredError {
	return deferredError{[]resource.Reference{{Ref: ref, Property: function}}}
}

// newScope returns a scope. data may contain model.Secret.
func (w *evaluator) newScope(ctx context.Context, p phase, data map[string]any, outputs resource.Outputs) *scope {
	return w.newScopeWith(ctx, p, data, outputs, model.Secret.Reveal)
}

func (w *evaluator) newScopeWith(ctx context.Context, p phase, data map[string]any, outputs resource.Outputs, text func(model.Secret) string) *scope {
	sc := &scope{evaluator: w, phase: p, data: data, secret: template.Holds(data), outputs: outputs, text: text}
	sc.reveal = func(secret model.Secret) string {
		w.learn(secret)
		return text(secret)
	}
	sc.known = sc.names(ctx)
	sc.known[expression.NameStep] = func(v any) (any, error) { return sc.step(ctx, v) }

	return sc
}

// plain returns the result of a function with plain secrets, and records the use of secrets.
func (sc *scope) plain(v any) any {
	sc.used = sc.used || template.Holds(v)

	return template.Reveal(v, sc.reveal)
}

// takeUsed reports whether a function returned a secret since the last call.
func (sc *scope) takeUsed() bool {
	used := sc.used
	sc.used = false

	return used
}

type failure struct {
	message, hint string
	// waits are the resources to wait for; then it is not a failure.
	waits []resource.Reference
	// missing is the path of a missing file.
	missing string
	// known reports whether the failure was reported before.
	known bool
	// sure reports whether it fails on every node, because a template is invalid.
	sure bool
}

// hiddenMessage replaces an error that may quote a secret.
const hiddenMessage = "it uses a secret, so its error is not shown"

// run evaluates an expression. On success f is nil. secret reports whether the expression uses a
// secret.
func (sc *scope) run(ctx context.Context, p *expression.Program, extra map[string]any) (v any, secret bool, f *failure) {
	if p.Message != "" {
		return nil, false, &failure{message: p.Message, hint: p.Hint}
	}
	sc.noteData(p.DataPaths...)
	v, secret, err := sc.evaluate(ctx, p, extra)
	var deferred deferredError
	switch {
	case errors.As(err, &deferred):
		return nil, false, &failure{waits: deferred.waits}
	case err != nil && secret:
		f = sc.failed(err)
		f.message, f.hint = hiddenMessage, ""
		return nil, true, f
	}

	return v, secret, sc.failed(err)
}

// evaluate is run for a valid expression. Its error may be a deferredError.
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
	var deferred deferredError
	if errors.As(err, &deferred) {
		return nil, false, deferredError{append(deferred.waits, outputsOf(p.Refs...).waits...)}
	}

	return v, sc.used || (sc.secret || sc.element.holdsSecret()) && sc.uses(p.Node()), err
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

// maxWork limits the cost of the loops of one evaluation, in bytes. An iteration costs stepCost and
// the size of its text or list.
const (
	maxWork  = 256 << 20
	stepCost = 64
)

var errTooMuchWork = expression.WithHint(errors.New("it exceeds the work limit"), "use join() to build a text from a list, or compute the value elsewhere")

// step counts an iteration of a loop and returns its value.
func (sc *scope) step(ctx context.Context, v any) (any, error) {
	sc.work += stepCost
	size := int64(0)
	if r := reflect.ValueOf(v); r.IsValid() && (r.Kind() == reflect.String || r.Kind() == reflect.Slice) {
		size = int64(r.Len())
	}
	sc.work += size
	if sc.work > maxWork || size > sc.opts.MaxBytes {
		return nil, errTooMuchWork
	}

	return v, context.Cause(ctx)
}

// mark marks the secret parts of the value of an expression: the whole value if the expression uses
// a secret, or single values of a literal mapping.
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

// uses reports whether an expression uses a secret of the data, a mapping or list that contains
// one, all names, or a function that returned a secret.
func (sc *scope) uses(node ast.Node) bool {
	found := expression.Sources{Paths: map[ast.Node][]string{}}
	ast.Walk(&node, &found)
	roots := sc.marked()
	for _, path := range found.Paths {
		at := roots[path[0]]
		for _, key := range path[1:] {
			at = template.Key(at, key)
		}
		if template.Holds(at) {
			return true
		}
	}

	return found.Calls && sc.used || found.All && (sc.secret || sc.element.holdsSecret())
}

func markAll(v *document.Value) {
	v.EachScalar(func(s *document.Value) { s.Secret, s.Derived = true, true })
}
