package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// resolver replaces the expressions in values of a document. It marks a deferred or failed value as
// Deferred, and adds it to waits or failed.
type resolver struct {
	scope    *scope
	problems model.Problems
	// waits are the resources that must run first, with the function that needs them.
	waits []resource.Reference
	// failed are the positions of failed values.
	failed []model.Position
	// missing are the missing files that caused problems.
	missing []string
	// forgiving ignores failed expressions, for an excluded resource.
	forgiving bool
	// skipLackingFacts marks a value with a missing fact as Deferred and failed, without a problem.
	skipLackingFacts bool
	// compileOnly compiles expressions without evaluating them.
	compileOnly bool
}

// value resolves a value. It returns v itself if there is nothing to resolve.
func (r *resolver) value(ctx context.Context, v document.Value) (document.Value, bool) {
	switch v.Kind {
	case document.String:
		if r.mayHold(v.Text) {
			return r.text(ctx, v), true
		}
	case document.List:
		copied := false
		for i := range v.Items {
			if item, changed := r.value(ctx, v.Items[i]); changed {
				if !copied {
					v.Items, copied = slices.Clone(v.Items), true
				}
				v.Items[i] = item
			}
		}
		return v, copied
	case document.Map:
		return r.mapping(ctx, v)
	}

	return v, false
}

func (r *resolver) mayHold(text string) bool {
	return expression.MayHoldExpression(text) || r.scope.evaluator.printed.in(text)
}

// mapping resolves the values and keys of a mapping, except the values of the given keys.
func (r *resolver) mapping(ctx context.Context, v document.Value, except ...string) (document.Value, bool) {
	copied, renamed := false, false
	for i := range v.Entries {
		e := v.Entries[i]
		changed := false
		if !slices.Contains(except, e.Key) {
			e.Value, changed = r.value(ctx, e.Value)
		} else if r.scope.evaluator.printed != nil {
			e.Value, changed = r.shown(e.Value), true
		}
		if r.mayHold(e.Key) {
			e.Key = r.key(ctx, e)
			changed, renamed = true, true
		}
		if changed {
			if !copied {
				v.Entries, copied = slices.Clone(v.Entries), true
			}
			v.Entries[i] = e
		}
	}
	if renamed {
		v.Entries = r.unique(v.Entries)
	}

	return v, copied
}

// shown returns an unresolved value with printed secrets redacted.
func (r *resolver) shown(v document.Value) document.Value {
	v.Text, v.Entries = r.scope.evaluator.printed.shown(v.Text), slices.Clone(v.Entries)
	for i := range v.Entries {
		v.Entries[i].Value = r.shown(v.Entries[i].Value)
	}

	return v
}

func (r *resolver) key(ctx context.Context, e document.Entry) string {
	key := r.text(ctx, document.Value{Kind: document.String, Text: e.Key, Pos: e.Pos})
	switch {
	case slices.Contains(r.failed, e.Pos):
	case key.Deferred:
		r.fail(e.Pos, "use it as a value", "a key must be known before the run")
	case key.Secret:
		r.fail(e.Pos, "use it as a value", "a key cannot be secret, because it is shown")
	case !key.IsScalar():
		r.fail(e.Pos, "", "the expression gives %s for a key, which must be text", key.Kind)
	}

	return key.Text
}

// unique reports keys that became equal by their expressions.
func (r *resolver) unique(entries []document.Entry) []document.Entry {
	out := make([]document.Entry, 0, len(entries))
	seen := make(map[string]model.Position, len(entries))
	for _, e := range entries {
		if first, twice := seen[e.Key]; twice {
			if !slices.Contains(r.failed, e.Pos) {
				r.fail(e.Pos, "keep one of them", "duplicate key `%s`, first at %s", e.Key, first)
			}
			continue
		}
		seen[e.Key] = e.Pos
		out = append(out, e)
	}

	return out
}

func (r *resolver) fail(pos model.Position, hint, format string, args ...any) {
	r.problems.Add(pos, hint, format, args...)
	r.failed = append(r.failed, pos)
}

// insertion builds a text with inserted values.
type insertion struct {
	strings.Builder
	// parts are the inserted values that matter for splitting a command line.
	parts document.Inserted
}

func (b *insertion) insert(value string) {
	if command.AffectsSplit(value) {
		b.parts = append(b.parts, [2]int{b.Len(), b.Len() + len(value)})
	}
	b.WriteString(value)
}

func (b *insertion) literal(text string) { b.WriteString(text) }

// text resolves a text that may contain expressions.
func (r *resolver) text(ctx context.Context, v document.Value) document.Value {
	parts, at, ok := expression.Scan(v.Text)
	if !ok {
		pos := r.position(v, at)
		r.problems.Add(pos, "close it with `"+expression.Closing(v.Text[at:])+"`, or "+expression.LiteralHint(v.Text[at:]), "the expression that begins here does not end")
		return r.unknown(v)
	}
	if len(parts) == 1 && parts[0].IsExpr {
		return r.singleExpression(ctx, v, parts[0])
	}
	var b insertion
	deferred, failed, secret := false, false, v.Secret
	for _, p := range parts {
		if !p.IsExpr {
			r.scope.evaluator.printed.walk(p.Literal, b.literal, b.insert)
			continue
		}
		piece, f := r.evaluate(ctx, v, p)
		switch {
		case f != nil && f.waits != nil:
			deferred = true
		case f != nil:
			failed = true
		case !piece.IsScalar():
			r.problems.Add(r.position(v, p.At), insideHint(piece.Kind), "the expression gives %s, which is not allowed inside a text", piece.Kind)
			failed = true
		default:
			b.insert(piece.Text)
			secret = secret || piece.Secret
		}
	}
	if failed {
		return r.unknown(v)
	}
	if deferred {
		return r.deferred(v)
	}

	return inserted(document.Value{Kind: document.String, Text: b.String(), Secret: secret, Derived: secret, Pos: v.Pos}, b.parts)
}

// inserted records the parts of a text that are results of expressions.
func inserted(v document.Value, parts document.Inserted) document.Value {
	if len(parts) > 0 {
		v.Inserted = &parts
	}

	return v
}

func insideHint(k document.Kind) string {
	switch k {
	case document.Null:
		return "give it a default with `??`"
	case document.List:
		return "use join() or toJSON(), or argv for the arguments of an exec"
	default:
		return "use join() or toJSON()"
	}
}

func (r *resolver) deferred(v document.Value) document.Value {
	v.Deferred = true
	if printed := r.scope.evaluator.printed; printed.in(v.Text) {
		v.Text = expression.Source(v.Text, printed.text)
	}

	return v
}

// position returns the position of an offset in a text. It skips the work for problems that are only
// counted.
func (r *resolver) position(v document.Value, at int) model.Position {
	if r.problems.Full() {
		return v.Pos
	}

	return r.scope.evaluator.doc.Position(v.Pos, v.Text, at)
}

func (r *resolver) unknown(v document.Value) document.Value {
	r.failed = append(r.failed, v.Pos)

	return document.Value{Kind: document.String, Deferred: true, Text: r.scope.evaluator.printed.shown(v.Text), Pos: v.Pos}
}

// singleExpression resolves a text that is one expression. The result has the type of the
// expression.
func (r *resolver) singleExpression(ctx context.Context, v document.Value, p expression.Part) document.Value {
	out, f := r.evaluate(ctx, v, p)
	switch {
	case f == nil:
		if v.Secret {
			markAll(&out)
		}
		if out.Kind == document.String && command.AffectsSplit(out.Text) {
			return inserted(out, document.Inserted{{0, len(out.Text)}})
		}
		return out
	case f.waits != nil:
		return r.deferred(v)
	default:
		return r.unknown(v)
	}
}

// evaluate returns the value of an expression in the text v. It adds problems and waits.
func (r *resolver) evaluate(ctx context.Context, v document.Value, p expression.Part) (document.Value, *failure) {
	s := r.scope.evaluator
	compiled := s.Program
	if r.compileOnly {
		compiled = s.compile // an expression that is not evaluated does not make the document dynamic
	}
	program := compiled(p.Expr, r.scope.element.use())
	if program.Message != "" {
		r.problems.Add(r.position(v, p.At), program.Advice(v.Text[p.At:], s.Data), "the expression is not valid: %s", program.Message)
		return v, &failure{}
	}
	if r.compileOnly || r.scope.broken && program.UsesData() || r.scope.element.isMissing(program) {
		return v, &failure{}
	}
	out, f := r.scope.value(ctx, program, v.Pos)
	if r.skipLackingFacts && (f != nil && f.waits == nil || f == nil && out.Kind == document.Null) && r.scope.lacksFact(ctx, program, f == nil) {
		return out, &failure{}
	}
	switch {
	case f == nil:
	case f.waits != nil:
		at := r.position(v, p.At)
		for _, wait := range f.waits {
			wait.Pos = at
			r.waits = append(r.waits, wait)
		}
		r.checkFields(program, at)
	case !f.sure && s.tolerates():
	case !r.forgiving && !f.known:
		r.problems.Add(r.position(v, p.At), f.hint, "the expression fails: %s", f.message)
		if f.missing != "" {
			r.missing = append(r.missing, f.missing)
		}
	}

	return out, f
}

// value evaluates a program. The value is secret if the program uses a secret.
func (sc *scope) value(ctx context.Context, p *expression.Program, pos model.Position) (document.Value, *failure) {
	sc.at = pos
	v, secret, f := sc.run(ctx, p, nil)
	if f != nil {
		return document.Value{}, f
	}
	out, err := expression.ToValue(v, pos)
	switch {
	case err != nil:
		return out, &failure{message: err.Error()}
	case secret:
		sc.mark(&out, p.Node())
	}

	return out, nil
}

// checkFields reports outputs that the type of a resource does not have.
func (r *resolver) checkFields(p *expression.Program, pos model.Position) {
	for _, f := range p.Fields {
		t, ok := r.scope.opts.Types.Get(f.Ref.Type)
		if !ok || len(t.Info.Outputs) == 0 || slices.ContainsFunc(t.Info.Outputs, func(o resource.Output) bool { return o.Name == f.Name }) {
			continue
		}
		known := make([]string, len(t.Info.Outputs))
		for i, o := range t.Info.Outputs {
			known[i] = o.Name
		}
		hint := cmp.Or(document.DidYouMean(f.Name, known), "it has "+strings.Join(known, ", "))
		r.problems.Add(pos, hint, "`%s` is no output of %s", f.Name, f.Ref)
	}
}

// object resolves a mapping of a document to plain values. Null becomes an empty mapping.
func (r *resolver) object(ctx context.Context, v document.Value) map[string]any {
	v, _ = r.value(ctx, v)
	out, _ := v.Plain().(map[string]any)
	if out == nil {
		out = map[string]any{}
	}

	return out
}

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
	p := w.Program(expression.Bare(text), anywhere)
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
	p := s.Program(expression.Bare(v.Text), r.scope.element.use())
	if p.Message != "" {
		r.problems.Add(v.Pos, p.Hint, "`%s` is not a valid expression: %s", name, p.Message)
		return false, false
	}
	if r.scope.broken && p.UsesData() || r.scope.element.isMissing(p) {
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
