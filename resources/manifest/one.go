package manifest

import (
	"context"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// DecodeOne decodes the resource of an ensure request, without a manifest that it includes.
func (l *Loader) DecodeOne(typ string, properties document.Value) (*resource.Resource, error) {
	return l.decodeOne(typ, properties, resource.Decode)
}

// ResolveDeclared is ResolveOne for a resource of the local user. It evaluates expressions with
// in.Data and the facts, and control may exclude the resource.
func (l *Loader) ResolveDeclared(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	t, ok := l.opts.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.opts.Types, typ, properties.Pos)}
	}
	s := l.session(emptyDocument(""), in)
	data := mergeData(nil, in.Data)
	b := &build{session: s, scope: s.newScope(ctx, inResources, data, nil), out: &Resolved{Data: data}, decode: in.decode()}
	s.resourceScope.Origin = l.Origin(b.out)
	b.add(ctx, declaration{Type: t, pos: properties.Pos, properties: properties})
	b.dropNameWarnings()
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// dropNameWarnings removes the warnings about the name, which matter only for repeated runs.
func (b *build) dropNameWarnings() {
	b.out.Warnings = slices.DeleteFunc(b.out.Warnings, func(w model.Problem) bool { return w.Property == keyName })
}

// ResolveOne resolves the resource of an ensure request, and the manifest that it includes. The
// resource is the last of the result. Its values are literal, without expressions. The error is the
// error of Resolve.
func (l *Loader) ResolveOne(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	res, err := l.decodeOne(typ, properties, in.decode())
	if err != nil {
		return nil, err
	}
	b := &build{session: l.session(emptyDocument(""), in), out: &Resolved{}, links: []resource.Links{resource.LinksOf(res)}}
	b.addResource(res, properties)
	b.dropNameWarnings()
	b.out.Warnings.Append(shellWarnings(res.Type, properties)...)
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// CompileCondition returns an error if a text is not a condition of control.
func (l *Loader) CompileCondition(text string) error {
	return l.session(emptyDocument(""), Inputs{}).compileCondition(text)
}

// Sensitive reports whether the values of a request must not be shown or stored. An invalid request
// is sensitive.
func (l *Loader) Sensitive(typ string, properties document.Value) bool {
	res, err := l.decodeOne(typ, properties, resource.Decode)

	return err != nil || res.Sensitive()
}

type decode func(*resource.Type, document.Value, model.Position) (*resource.Resource, model.Problems)

func (in Inputs) decode() decode {
	if in.ObserveOnly {
		return resource.DecodeQuestion
	}

	return resource.Decode
}

func (l *Loader) decodeOne(typ string, properties document.Value, decode decode) (*resource.Resource, error) {
	t, ok := l.opts.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.opts.Types, typ, properties.Pos)}
	}
	res, problems := decode(t, properties, properties.Pos)
	if i := slices.IndexFunc(properties.Entries, func(e document.Entry) bool { return e.Key == keyControl }); i >= 0 {
		problems.Add(properties.Entries[i].Pos, "evaluate the condition before the request", "`control` is not allowed in a request")
	}
	if len(problems) > 0 {
		return nil, tidyProblems(problems)
	}

	return res, nil
}
