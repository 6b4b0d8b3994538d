package manifest

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
)

// excluded evaluates the control property. It returns the reason if the resource is excluded. ok is
// false if an expression failed.
func (r *resolver) excluded(ctx context.Context, properties document.Value) (reason string, ok bool) {
	control, has := properties.Get(keyControl)
	if !has || control.Kind != document.Map {
		return "", true
	}
	ok = true
	for _, e := range control.Entries {
		if e.Key != "if" && e.Key != "unless" || !e.Value.IsScalar() {
			continue
		}
		yes, valid := r.condition(ctx, "control."+e.Key, e.Value)
		switch {
		case !valid:
			ok = false
		case yes != (e.Key == "if") && reason == "":
			reason = fmt.Sprintf("control.%s is %t: %s", e.Key, yes, r.scope.evaluator.printed.shown(expression.Bare(e.Value.Text)))
		}
	}

	return reason, ok
}

// compileCondition returns an error if a text does not compile, or if its value is never true or
// false.
func (w *evaluator) compileCondition(text string) error {
	p := w.Program(expression.Bare(text), false)
	if p.Message != "" {
		return errors.New(p.Message)
	}
	if t := p.Node().Type(); t != nil && t.Kind() != reflect.Interface && t.Kind() != reflect.Bool {
		return fmt.Errorf("it is %s and never true or false", t.Kind())
	}

	return nil
}

// condition evaluates a condition. valid is false if the condition fails, which it reports as a
// problem.
func (r *resolver) condition(ctx context.Context, name string, v document.Value) (yes, valid bool) {
	s := r.scope.evaluator
	p := s.Program(expression.Bare(v.Text), false)
	if p.Message != "" {
		r.problems.Add(v.Pos, p.Hint, "`%s` is not a valid expression: %s", name, p.Message)
		return false, false
	}
	if r.scope.broken && p.UsesData() {
		return false, false
	}
	out, f := r.scope.value(ctx, p, v.Pos)
	switch {
	case f != nil && f.known:
	case f != nil && f.waits != nil:
		r.problems.Add(v.Pos, "use a guard of the type, such as `onlyif`", "`%s` must be known before the run", name)
	case f != nil && s.tolerates():
	case f != nil:
		r.problems.Add(v.Pos, f.hint, "`%s` fails: %s", name, f.message)
	case out.Kind != document.Bool:
		r.problems.Add(v.Pos, "write a comparison, for example Facts.host.info.os == 'linux'", "`%s` must be true or false, not %s", name, out.Kind)
	default:
		return out.Text == "true", true
	}

	return false, false
}
