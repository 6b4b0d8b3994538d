package manifest

import (
	"context"
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// Resolve makes resources of a document. The error is model.Problems with
// every problem of the document, sorted; nothing has been touched then.
func (l *Loader) Resolve(ctx context.Context, doc *Document, in Inputs) (*Resolved, error) {
	return l.session(doc, in).resolve(ctx, in)
}

func (s *session) resolve(ctx context.Context, in Inputs) (*Resolved, error) {
	b, err := s.declare(ctx, in.Data)
	if err != nil {
		return nil, err
	}

	return b.finish(ctx, in)
}

// finish gives what came of a document and all that it includes.
func (b *build) finish(ctx context.Context, in Inputs) (*Resolved, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	b.checkLinks(in.Known)
	if len(b.problems) > 0 {
		return nil, finish(b.problems)
	}
	b.out.Static = !b.session.dynamic
	b.out.Secrets, b.out.own = b.session.learnt(), b.own

	return b.out, nil
}

// declare makes resources of what a document declares, and of what it includes,
// with all problems but those of their links. Its error is why ctx ended.
func (s *session) declare(ctx context.Context, external map[string]any) (*build, error) {
	doc := s.doc
	problems := append(doc.Problems(), doc.checkComments()...)
	if !doc.HasResources() && len(problems) == 0 {
		problems.Add(model.Position{File: doc.Name(), Line: 1, Column: 1}, "add `muster:` with `resources:`", "the document has no `muster` section")
	}
	data, dataProblems := resolveData(ctx, s.world, external)
	out := &Resolved{Data: data, dir: s.dir}
	s.holds.Origin = s.loader.Origin(out)

	b := &build{session: s, scope: s.scope(ctx, inResources, data, nil), out: out}
	b.scope.broken = len(dataProblems) > 0 || s.unsure
	b.settings(ctx, doc)
	s.holds.FailOnError = out.FailOnError
	declared := blocks{types: s.opts.Types}
	items := doc.resources
	if doc.jetFile.Text != "" {
		items, b.openEnded = nil, true
		if len(dataProblems) == 0 {
			items, b.openEnded = b.rendered(ctx, doc.jetFile)
		}
	}
	declared.read(items)
	b.openEnded = b.openEnded || len(declared.problems) > 0
	out.Resources = make([]*resource.Resource, 0, len(declared.out))
	b.own = make([]*resource.Resource, 0, len(declared.out))
	out.values = make([]resource.Value, 0, len(declared.out))
	for _, d := range declared.out {
		b.add(ctx, d)
	}
	b.assemble(ctx)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	b.problems = slices.Concat(problems, dataProblems, declared.problems, b.problems)

	return b, nil
}

// ResolveData gives the data of a document alone, for muster data resolve and
// for sources of data. Its errors are those of Resolve.
func (l *Loader) ResolveData(ctx context.Context, doc *Document, in Inputs) (map[string]any, error) {
	s := l.session(doc, in)
	data, problems := resolveData(ctx, s.world, in.Data)
	problems = slices.Concat(doc.Problems(), doc.checkComments(), problems)
	if len(problems) > 0 {
		return nil, finish(problems)
	}

	return data, nil
}

// settings are what stands beside the resources.
func (b *build) settings(ctx context.Context, doc *Document) {
	r := resolver{scope: b.scope}
	b.out.PreMessage = message(ctx, &r, "pre_message", doc.pre)
	b.out.PostMessage = message(ctx, &r, "post_message", doc.post)
	if v, _ := r.value(ctx, doc.fail); v.Kind != resource.Null && !slices.Contains(r.failed, v.Pos) {
		yes, ok := document.ParseBool(v.Text)
		if !ok || !v.IsScalar() {
			r.problems.Add(v.Pos, "", "`fail_on_error` must be true or false")
		}
		b.out.FailOnError = yes
	}
	b.problems = append(b.problems, r.problems...)
}

func message(ctx context.Context, r *resolver, key string, v resource.Value) string {
	v, _ = r.value(ctx, v)
	switch {
	case slices.Contains(r.failed, v.Pos), v.Kind == resource.Null:
		return ""
	case v.Late:
		r.problems.Add(v.Pos, "", "`%s` must be known before the run", key)
	case v.Secret:
		r.problems.Add(v.Pos, "", "`%s` cannot hold a secret, because it is shown", key)
	case !v.IsScalar():
		r.problems.Add(v.Pos, "", "`%s` must be text, not %s", key, v.Kind)
	}

	return v.Text
}

// LoadData fetches a source of data and resolves it: a document with data, and
// hierarchy and overrides where it has them, or a mapping that is the data.
// in.Dir is not used: relative paths are under the directory of the source.
// Its errors are those of Fetch, Parse and Resolve.
func (l *Loader) LoadData(ctx context.Context, source string, in Inputs) (data map[string]any, err error) {
	src, err := l.Fetch(ctx, source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	doc, err := parseData(src.Name, src.Data, l.eval.MaxBytes)
	if err != nil {
		return nil, err
	}
	in.Dir = src.Dir

	return l.ResolveData(ctx, doc, in)
}
