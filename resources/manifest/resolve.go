package manifest

import (
	"context"
	"errors"
	"slices"
	"strconv"
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
	b.out.Secrets, b.out.own = b.session.Secrets(), b.own

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
	declared := blocks{types: s.opts.Types, declare: func(d declaration) { b.add(ctx, d) }}
	switch {
	case doc.JetFile.Text == "":
		declared.Read(doc.Resources.Items)
	case len(dataProblems) > 0:
		b.openEnded = true
	default:
		var items []document.Value
		items, b.openEnded = b.rendered(ctx, doc.JetFile)
		declared.Read(items)
	}
	b.openEnded = b.openEnded || len(declared.problems) > 0
	b.assemble(ctx)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	out.Warnings = append(out.Warnings, s.Warnings()...)
	b.problems = s.printed.problems(slices.Concat(problems, dataProblems, declared.problems, b.problems))

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

func (b *build) settings(ctx context.Context, doc *Document) {
	r := resolver{scope: b.scope}
	b.out.PreMessage = message(ctx, &r, "pre_message", doc.Pre)
	b.out.PostMessage = message(ctx, &r, "post_message", doc.Post)
	if v, _ := r.value(ctx, doc.Fail); v.Kind != document.Null && !slices.Contains(r.failed, v.Pos) {
		yes, ok := document.ParseBool(v.Text)
		if !ok || !v.IsScalar() {
			r.problems.Add(v.Pos, "", "`fail_on_error` must be true or false")
		}
		b.out.FailOnError = yes
	}
	b.out.Flapping = flapping(ctx, &r, doc.Flapping)
	b.out.Limit = limit(ctx, &r, doc.Limit)
	b.problems = append(b.problems, r.problems...)
}

func message(ctx context.Context, r *resolver, key string, v document.Value) string {
	v, _ = r.value(ctx, v)
	switch {
	case slices.Contains(r.failed, v.Pos), v.Kind == document.Null:
		return ""
	case v.Deferred:
		r.problems.Add(v.Pos, "", "`%s` must be known before the run", key)
	case v.Secret:
		r.problems.Add(v.Pos, "", "`%s` cannot hold a secret, because it is shown", key)
	case !v.IsScalar():
		r.problems.Add(v.Pos, "", "`%s` must be text, not %s", key, v.Kind)
	}

	return v.Text
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

// maxRepairs is the maximum of flapping.repairs.
const maxRepairs = 100

// flapping reads the setting flapping: off, or a mapping.
func flapping(ctx context.Context, r *resolver, v document.Value) model.Flapping {
	out := model.DefaultFlapping
	v, _ = r.value(ctx, v)
	yes, isBool := document.ParseBool(v.Text)
	switch {
	case v.Kind == document.Null, slices.Contains(r.failed, v.Pos):
		return out
	case v.Kind == document.String && v.Text == "off", v.IsScalar() && isBool && !yes:
		return model.Flapping{}
	case v.Kind != document.Map:
		r.problems.Add(v.Pos, "write off, or {repairs: 5, within: 1m}", "`flapping` cannot be %s", word(v))
		return out
	}
	for _, e := range v.Entries {
		switch e.Key {
		case "repairs":
			n, err := strconv.Atoi(e.Value.Text)
			if err != nil || !e.Value.IsScalar() || n < 1 || n > maxRepairs {
				r.problems.Add(e.Value.Pos, "write `flapping: off` for no limit", "`repairs` must be a number from 1 to %d", maxRepairs)
				continue
			}
			out.Repairs = n
		case "within":
			err := out.Within.UnmarshalText([]byte(e.Value.Text))
			if err != nil || !e.Value.IsScalar() || out.Within.Std() < time.Second || out.Within.Std() > 24*time.Hour {
				r.problems.Add(e.Value.Pos, "for example 1m", "`within` must be a duration from 1s to 24h")
			}
		default:
			r.problems.AddMade(func() model.Problem {
				return document.Unknown(e.Pos, "key", e.Key, " in `flapping`", []string{"repairs", "within"})
			})
		}
	}

	return out
}

// limit reads the maximum number of changes per minute; 0 means no limit.
func limit(ctx context.Context, r *resolver, v document.Value) int {
	v, _ = r.value(ctx, v)
	if v.Kind == document.Null || slices.Contains(r.failed, v.Pos) {
		return 0
	}
	n, err := strconv.Atoi(v.Text)
	const hint = "the most changes a minute, or 0 for any number"
	switch {
	case err != nil || !v.IsScalar():
		r.problems.Add(v.Pos, hint, "`limit` must be a whole number, not %s", word(v))
	case n < 0:
		r.problems.Add(v.Pos, hint, "`limit` must not be negative")
	}

	return n
}

func word(v document.Value) string {
	if v.IsScalar() {
		return strconv.Quote(v.Text)
	}

	return v.Kind.String()
}

// link records the name of a resource and its references with their positions, also for an invalid
// resource.
func (b *build) link(ref model.Ref, pos model.Position, properties document.Value, waits []resource.Reference) {
	if strings.TrimSpace(ref.Name) == "" {
		return
	}
	t, known := b.session.opts.Types.Get(ref.Type)
	l := resource.Links{Ref: ref, Pos: pos, Repeats: known && t.Include != nil}
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
