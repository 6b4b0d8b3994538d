package manifest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// wait is a resource that must have run before an expression can be evaluated.
type wait struct {
	ref model.Ref
	pos model.Position
	// file says that it is for a file that the resource makes, not for its outputs.
	file bool
}

// reference returns the wait as a reference of the resource, by the function that takes it.
func (w wait) reference() resource.Reference {
	if w.file {
		return resource.Reference{Ref: w.ref, Property: "readFile", Pos: w.pos}
	}

	return resource.Reference{Ref: w.ref, Property: nameOutputs, Pos: w.pos}
}

// resolver replaces the expressions in values of a document. A value that is
// late or has failed comes back marked Late; waits and failed tell which.
type resolver struct {
	scope    *scope
	problems model.Problems
	waits    []wait
	// failed are the places of values that came to nothing.
	failed []model.Position
	// missing are the files that problems are about because they are not there.
	missing []string
	// forgiving drops what fails when it is evaluated, for a resource that is excluded anyway.
	forgiving bool
}

// value resolves a value; it gives v itself, not a copy, where there is nothing to resolve.
func (r *resolver) value(ctx context.Context, v resource.Value) (resource.Value, bool) {
	switch v.Kind {
	case resource.String:
		if mayHoldExpression(v.Text) {
			return r.text(ctx, v), true
		}
	case resource.List:
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
	case resource.Map:
		return r.mapping(ctx, v, "")
	}

	return v, false
}

// mapping resolves the values and keys of a mapping, but for the value of the key except.
func (r *resolver) mapping(ctx context.Context, v resource.Value, except string) (resource.Value, bool) {
	copied, renamed := false, false
	for i := range v.Entries {
		e := v.Entries[i]
		changed := false
		if except == "" || e.Key != except {
			e.Value, changed = r.value(ctx, e.Value)
		}
		if mayHoldExpression(e.Key) {
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

func (r *resolver) key(ctx context.Context, e resource.Entry) string {
	key := r.text(ctx, resource.Value{Kind: resource.String, Text: e.Key, Pos: e.Pos})
	switch {
	case slices.Contains(r.failed, e.Pos):
	case key.Late:
		r.fail(e.Pos, "use it as a value", "a key must be known before the run")
	case key.Secret:
		r.fail(e.Pos, "use it as a value", "a key cannot be secret, because it is shown")
	case !key.IsScalar():
		r.fail(e.Pos, "", "the expression gives %s for a key, which must be text", key.Kind)
	}

	return key.Text
}

// unique reports keys that became the same by their expressions.
func (r *resolver) unique(entries []resource.Entry) []resource.Entry {
	out := make([]resource.Entry, 0, len(entries))
	seen := make(map[string]model.Position, len(entries))
	for _, e := range entries {
		if first, twice := seen[e.Key]; twice {
			if !slices.Contains(r.failed, e.Pos) {
				r.fail(e.Pos, "keep one of them", "the key `%s` is there twice, first at %s", e.Key, first)
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

// text resolves a text that may hold expressions.
func (r *resolver) text(ctx context.Context, v resource.Value) resource.Value {
	parts, at, ok := scan(v.Text)
	if !ok {
		pos := r.scope.world.doc.place(v.Pos, v.Text, at)
		r.problems.Add(pos, "close it with `"+closing(v.Text[at:])+"`, or "+literalHint(v.Text[at:]), "the expression that begins here does not end")
		return r.unknown(v)
	}
	if len(parts) == 1 && parts[0].isExpr {
		return r.whole(ctx, v, parts[0])
	}
	var b strings.Builder
	late, failed, secret := false, false, v.Secret
	for _, p := range parts {
		if !p.isExpr {
			b.WriteString(p.literal)
			continue
		}
		piece, f := r.evaluate(ctx, v, p)
		switch {
		case f != nil && f.late != nil:
			late = true
		case f != nil:
			failed = true
		case !piece.IsScalar():
			r.problems.Add(r.scope.world.doc.place(v.Pos, v.Text, p.at), insideHint(piece.Kind), "the expression gives %s, which cannot stand inside a text", piece.Kind)
			failed = true
		default:
			b.WriteString(piece.Text)
			secret = secret || piece.Secret
		}
	}
	if failed {
		return r.unknown(v)
	}
	if late {
		v.Late = true
		return v
	}

	return resource.Value{Kind: resource.String, Text: b.String(), Secret: secret, Pos: v.Pos}
}

func insideHint(k resource.Kind) string {
	if k == resource.Null {
		return "give it a default with `??`"
	}

	return "use join() or toJSON()"
}

// unknown gives v as a value that nothing is known of.
func (r *resolver) unknown(v resource.Value) resource.Value {
	r.failed = append(r.failed, v.Pos)

	return resource.Value{Kind: resource.String, Late: true, Text: v.Text, Pos: v.Pos}
}

// whole resolves a text that is one expression, whose type it takes.
func (r *resolver) whole(ctx context.Context, v resource.Value, p part) resource.Value {
	out, f := r.evaluate(ctx, v, p)
	switch {
	case f == nil && v.Secret:
		markAll(&out)
		return out
	case f == nil:
		return out
	case f.late != nil:
		v.Late = true
		return v
	default:
		return r.unknown(v)
	}
}

// evaluate gives the value of an expression within the text v. Problems and
// waits are noted here.
func (r *resolver) evaluate(ctx context.Context, v resource.Value, p part) (resource.Value, *failure) {
	s := r.scope.world
	program := s.program(p.expr, false)
	if program.message != "" {
		r.problems.Add(s.doc.place(v.Pos, v.Text, p.at), program.advice(v.Text[p.at:]), "the expression is not valid: %s", program.message)
		return v, &failure{}
	}
	if r.scope.broken && program.usesData() {
		return v, &failure{}
	}
	out, f := r.scope.value(ctx, program, v.Pos)
	switch {
	case f == nil:
	case f.late != nil:
		for i, ref := range f.late {
			r.waits = append(r.waits, wait{ref: ref, file: f.file && i == 0, pos: s.doc.place(v.Pos, v.Text, p.at)})
		}
		r.checkFields(program, s.doc.place(v.Pos, v.Text, p.at))
	case !f.sure && s.tolerates():
	case !r.forgiving && !f.known:
		r.problems.Add(s.doc.place(v.Pos, v.Text, p.at), f.hint, "the expression fails: %s", f.message)
		if f.missing != "" {
			r.missing = append(r.missing, f.missing)
		}
	}

	return out, f
}

// value evaluates a program to a value, marked as secret when it uses a secret.
func (sc *scope) value(ctx context.Context, p *program, pos model.Position) (resource.Value, *failure) {
	v, secret, f := sc.run(ctx, p, nil)
	if f != nil {
		return resource.Value{}, f
	}
	out, err := toValue(v, pos)
	switch {
	case err != nil:
		return out, &failure{message: err.Error()}
	case secret:
		sc.mark(&out, p.Node())
	}

	return out, nil
}

// checkFields finds outputs that the type of their resource does not give.
func (r *resolver) checkFields(p *program, pos model.Position) {
	for _, f := range p.fields {
		t, ok := r.scope.opts.Types.Get(f.ref.Type)
		if !ok || len(t.Info.Outputs) == 0 || slices.ContainsFunc(t.Info.Outputs, func(o resource.Output) bool { return o.Name == f.name }) {
			continue
		}
		known := make([]string, len(t.Info.Outputs))
		for i, o := range t.Info.Outputs {
			known[i] = o.Name
		}
		hint := cmp.Or(document.DidYouMean(f.name, known), "it has "+strings.Join(known, ", "))
		r.problems.Add(pos, hint, "`%s` is no output of %s", f.name, f.ref)
	}
}
