package manifest

import (
	"context"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// DecodeOne is ResolveOne without a look at what the resource includes.
func (l *Loader) DecodeOne(typ string, properties document.Value) (*resource.Resource, error) {
	return l.decodeOne(typ, properties, resource.Decode)
}

// ResolveOne makes the resource of an ensure request, the last of the result;
// after those of the manifest that it includes. Its values are literal:
// nothing in them is an expression. The error is that of Resolve.
func (l *Loader) ResolveOne(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	return l.resolveOne(ctx, typ, properties, in, resource.Decode)
}

// ResolveQuestion is ResolveOne for a resource that is only asked about: what is
// not given is not missed.
func (l *Loader) ResolveQuestion(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	return l.resolveOne(ctx, typ, properties, in, resource.DecodeQuestion)
}

// ResolveDeclared is ResolveOne for a resource of the local user. It evaluates expressions with
// in.Data and the facts, and control may exclude the resource.
func (l *Loader) ResolveDeclared(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	return l.resolveDeclared(ctx, typ, properties, in, resource.Decode)
}

// ResolveDeclaredQuestion is ResolveDeclared for a resource that is only observed. It requires no
// properties.
func (l *Loader) ResolveDeclaredQuestion(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	return l.resolveDeclared(ctx, typ, properties, in, resource.DecodeQuestion)
}

func (l *Loader) resolveDeclared(ctx context.Context, typ string, properties document.Value, in Inputs, decode decode) (*Resolved, error) {
	t, ok := l.eval.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.eval.Types, typ, properties.Pos)}
	}
	s := l.session(emptyDocument(""), in)
	data := mergeData(nil, in.Data)
	b := &build{session: s, scope: s.Scope(ctx, inResources, data, nil), out: &Resolved{Data: data}, decode: decode}
	s.holds.Origin = l.Origin(b.out)
	b.add(ctx, declaration{Type: t, Pos: properties.Pos, Properties: properties})
	b.dropNameWarnings()
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// dropNameWarnings removes the warnings about the name, which matter only for repeated runs.
func (b *build) dropNameWarnings() {
	b.out.Warnings = slices.DeleteFunc(b.out.Warnings, func(w model.Problem) bool { return w.Property == keyName })
}

func (l *Loader) resolveOne(ctx context.Context, typ string, properties document.Value, in Inputs, decode decode) (*Resolved, error) {
	res, err := l.decodeOne(typ, properties, decode)
	if err != nil {
		return nil, err
	}
	b := &build{session: l.session(emptyDocument(""), in), out: &Resolved{}, links: []resource.Links{resource.LinksOf(res)}}
	b.keep(res, properties)
	b.dropNameWarnings()
	b.out.Warnings.Append(shellWarnings(res.Type, properties)...)
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// CompileCondition returns an error if a text is not a condition of control.
func (l *Loader) CompileCondition(text string) error {
	return l.session(emptyDocument(""), Inputs{}).CompileCondition(text)
}

// Sensitive reports whether nothing of the values of a request may be shown or kept,
// which nobody knows of one that is not valid.
func (l *Loader) Sensitive(typ string, properties document.Value) bool {
	res, err := l.decodeOne(typ, properties, resource.Decode)

	return err != nil || res.Sensitive()
}

type decode func(*resource.Type, document.Value, model.Position) (*resource.Resource, model.Problems)

func (l *Loader) decodeOne(typ string, properties document.Value, decode decode) (*resource.Resource, error) {
	t, ok := l.eval.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.eval.Types, typ, properties.Pos)}
	}
	res, problems := decode(t, properties, properties.Pos)
	if i := slices.IndexFunc(properties.Entries, func(e document.Entry) bool { return e.Key == keyControl }); i >= 0 {
		problems.Add(properties.Entries[i].Pos, "decide before asking", "`control` belongs into a manifest, not into a request")
	}
	if len(problems) > 0 {
		return nil, tidyProblems(problems)
	}

	return res, nil
}
