package manifest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// Resolve resolves a document into resources and changes nothing on the machine. The error is
// model.Problems with all problems of the document, sorted.
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

// finish returns the resolved document with its child manifests.
func (b *build) finish(ctx context.Context, in Inputs) (*Resolved, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	b.checkLinks(in.Known)
	if len(b.problems) > 0 {
		return nil, tidyProblems(b.problems)
	}
	b.out.Static, b.out.Inputs = !b.session.dynamic, b.session.Inputs()
	b.out.Secrets = b.session.Secrets()
	if !in.RunOnly {
		b.out.own, b.out.values = b.own, b.values
	}

	return b.out, nil
}

// declare converts the declarations of a document and of its child manifests to resources, with all
// problems except those of links. Its error is the cause of ctx.
func (s *session) declare(ctx context.Context, external map[string]any) (*build, error) {
	doc := s.doc
	_, comments := doc.comments()
	problems := append(doc.Problems(), comments...)
	if !doc.HasResources() && len(problems) == 0 {
		problems.Add(model.Position{File: doc.Name(), Line: 1, Column: 1}, "add `muster:` with `resources:`", "the document has no `muster` section")
	}
	data, dataProblems, warnings := resolveData(ctx, s.evaluator, external)
	s.evaluator.Data = data
	out := &Resolved{Data: data, dir: s.dir, ccm: doc.IsCCM(), Warnings: warnings}
	s.resourceScope.Origin = s.loader.Origin(out)

	b := &build{session: s, scope: s.newScope(ctx, inResources, data, nil), out: out}
	b.scope.broken = len(dataProblems) > 0 || s.unsure
	b.settings(ctx, doc)
	s.resourceScope.FailOnError = out.FailOnError
	list := blocks{types: s.opts.Types}
	switch {
	case doc.JetFile.Text == "":
		list.Read(doc.Resources.Items)
	case len(dataProblems) > 0:
		b.openEnded = true
	default:
		var items []document.Value
		items, b.openEnded = b.rendered(ctx, doc.JetFile)
		list.Read(items)
	}
	b.declareAll(ctx, list.declared)
	b.problems.Append(b.found.problems()...)
	b.openEnded = b.openEnded || len(list.problems) > 0
	b.assemble(ctx)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, s.Warnings()...)
	b.problems = s.printed.problems(slices.Concat(problems, dataProblems, list.problems, b.problems))

	return b, nil
}

// ResolveData returns the data of a document, for muster data resolve and for sources of data. Its
// errors are the errors of Resolve.
func (l *Loader) ResolveData(ctx context.Context, doc *Document, in Inputs) (map[string]any, error) {
	data, err := l.resolveData(ctx, doc, in)

	return data.Values, err
}

func (l *Loader) resolveData(ctx context.Context, doc *Document, in Inputs) (Data, error) {
	s := l.session(doc, in)
	data, found, warnings := resolveData(ctx, s.evaluator, in.Data)
	_, comments := doc.comments()
	problems := slices.Concat(doc.Problems(), comments, found)
	if len(problems) > 0 {
		return Data{}, tidyProblems(problems)
	}
	if l.opts.Warn != nil {
		for _, w := range warnings {
			l.opts.Warn(w)
		}
	}

	// The caller does not know which secrets the data are derived from.
	values := template.Reveal(data, func(s model.Secret) model.Secret { return model.NewSecret(s.Reveal()) }).(map[string]any)

	return Data{values, s.distrusted()}, nil
}

// maxRepairs is the maximum of flapping.repairs.
const maxRepairs = 100

// settings decodes the settings of a document.
func (b *build) settings(ctx context.Context, doc *Document) {
	out := struct {
		FailOnError bool           `json:"fail_on_error"`
		Flapping    model.Flapping `json:"flapping"`
		Limit       int            `json:"limit"`
		PreMessage  string         `json:"pre_message"`
		PostMessage string         `json:"post_message"`
	}{Flapping: model.DefaultFlapping}
	r := resolver{scope: b.scope}
	known, off := document.Value{Kind: document.Map}, false
	for _, e := range doc.settings.Entries {
		e.Value, _ = r.value(ctx, e.Value)
		yes, isBool := document.ParseBool(e.Value.Text)
		switch {
		case holdsFailed(e.Value, r.failed):
		case e.Value.IsDeferred():
			r.problems.Add(e.Value.Pos, "", "`%s` must be known before the run", e.Key)
		case e.Value.Secret && strings.HasSuffix(e.Key, "_message"):
			r.problems.Add(e.Value.Pos, "", "`%s` cannot hold a secret, because it is shown", e.Key)
		case e.Key == "flapping" && isBool && !yes:
			out.Flapping, off = model.Flapping{}, true
		default:
			known.Entries = append(known.Entries, e)
		}
	}
	hints := map[string]string{"flapping": "write off, or {repairs: 5, within: 1m}", "limit": "the most changes a minute, or 0 for any number"}
	var d document.Decoder
	d.Document(known, &out)
	if n := out.Flapping.Repairs; !off && (n < 1 || n > maxRepairs) {
		d.Problems.Add(d.Positions["flapping.repairs"], "write `flapping: off` for no limit", "`flapping.repairs` must be a number from 1 to %d", maxRepairs)
	}
	if t := out.Flapping.Within.Std(); !off && (t < time.Second || t > 24*time.Hour) {
		d.Problems.Add(d.Positions["flapping.within"], "for example 1m", "`flapping.within` must be a duration from 1s to 24h")
	}
	if out.Limit < 0 {
		d.Problems.Add(d.Positions["limit"], hints["limit"], "`limit` must not be negative")
	}
	for i := range d.Problems {
		p := &d.Problems[i]
		p.Hint = cmp.Or(p.Hint, hints[p.Property])
	}
	b.problems = append(b.problems, append(r.problems, d.Problems...)...)
	b.out.FailOnError, b.out.Flapping, b.out.Limit = out.FailOnError, out.Flapping, out.Limit
	b.out.PreMessage, b.out.PostMessage = out.PreMessage, out.PostMessage
}

// Data are the values of a source of data.
type Data struct {
	Values map[string]any
	// Untrusted is the reason why others may change a file that readFile returned for the values;
	// nil if there is none.
	Untrusted error
}

// LoadData fetches a source of data and resolves it. The source is a document with data, hierarchy
// and overrides, or a mapping of data. The error wraps paths.ErrUntrusted if users other than root,
// the running user and in.Author may change the file. Paths in the data are relative to the
// directory of the source, and its author is the author of the source. Errors are those of Fetch,
// Parse and Resolve.
func (l *Loader) LoadData(ctx context.Context, source string, in Inputs) (data Data, err error) {
	src, err := l.FetchTrusted(ctx, source, in.Author)
	if err != nil {
		return data, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	doc, err := parseData(src.Name, src.Data, l.opts.MaxBytes)
	if err != nil {
		return data, err
	}
	in.Dir, in.Author = src.Dir, src.Author

	return l.resolveData(ctx, doc, in)
}

// link records the name of a resource and its references with their positions, also for an invalid
// resource.
func (b *build) link(ref model.Ref, pos model.Position, properties document.Value, waits []resource.Reference) {
	if strings.TrimSpace(ref.Name) == "" {
		return
	}
	t, known := b.session.opts.Types.Get(ref.Type)
	l := resource.Links{Ref: ref, Pos: pos, Element: b.scope.element.label(), Repeats: known && t.Include != nil}
	if alias, ok := properties.Get(keyAlias); ok && alias.IsScalar() && !alias.Deferred {
		l.Alias = alias.Text
		b.session.common.aliases[model.Ref{Type: ref.Type, Name: alias.Text}] = ref
	}
	for _, key := range []string{"require", "subscribe"} {
		refs, _ := properties.Get(key)
		for _, item := range refs.Items {
			if to, err := model.ParseRef(item.Text); err == nil && item.IsScalar() && !item.Deferred {
				l.Needs = append(l.Needs, resource.Reference{Ref: to, Property: key, Pos: item.Pos})
			}
		}
	}
	l.Needs = append(l.Needs, waits...)
	for _, w := range waits {
		if t, ok := b.session.opts.Types.Get(w.Ref.Type); ok && t.Outputs == nil && w.Property == expression.NameOutputs {
			b.problems.Add(w.Pos, "", "a %s gives no outputs", t.Name)
		}
	}
	b.links = append(b.links, l)
}

// checkLinks checks names and references. If some declarations are unknown, an unknown reference
// may be valid. A reference to an unknown type is an error, unless other problems may explain it.
func (b *build) checkLinks(earlier func(model.Ref) bool) {
	sound := len(b.problems) == 0
	unseen := map[model.Ref]bool{}
	leftOut := b.allExcludedRefs()
	known := func(ref model.Ref) bool {
		if leftOut[ref] || (earlier != nil && earlier(ref)) {
			return true
		}
		_, may := b.session.opts.Types.Get(ref.Type)
		may = (b.openEnded || b.excludedUnknown) && (may || !sound)
		unseen[ref] = may && !b.openEnded
		return may
	}
	b.problems.Append(resource.CheckLinks(b.links, known)...)
	for _, l := range b.links {
		for _, need := range l.Needs {
			if unseen[need.Ref] {
				b.out.Warnings = append(b.out.Warnings, model.ProblemAt(need.Pos, "check that an excluded child manifest declares it, which cannot be read here", "`%s` names %s, which no readable manifest declares; it counts as met", need.Property, need.Ref)...)
			}
		}
	}
}
