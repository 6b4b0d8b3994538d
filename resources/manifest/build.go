package manifest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// build converts the declarations of a document to resources.
type build struct {
	session  *session
	scope    *scope
	out      *Resolved
	problems model.Problems
	// own are the resources of the document itself.
	own []*resource.Resource
	// values are the resolved properties of own.
	values []document.Value
	// links are the links of the resources of the document and of its child manifests.
	links []resource.Links
	// openEnded reports whether some declarations are unknown.
	openEnded bool
	// observeOnly requires no properties.
	observeOnly bool
	// excludedUnknown reports whether some declarations of excluded manifests are unknown.
	excludedUnknown bool
	// excluded is why the control of a group excludes the resources that are added; empty for none.
	excluded string
	// found are the problems of the resources that are added.
	found elementProblems
}

type warner interface{ Warnings() model.Problems }

func (b *build) add(ctx context.Context, d declaration) {
	if d.Type.Include != nil && b.session.resourceScope.DenyApply {
		b.openEnded = true
		b.problems.Add(d.pos, "remove it, or allow it with `allow_apply: true` where this manifest is included", "a manifest that is included with `allow_apply: false` cannot include another")
		return
	}
	r := resolver{scope: b.scope}
	reason, ok := b.excluded, true
	if reason == "" {
		reason, ok = r.excluded(ctx, d.properties)
	}
	r.forgiving, b.scope.quiet = reason != "", reason != ""
	properties, _ := r.mapping(ctx, d.properties, unevaluated(d.Type)...)
	b.scope.quiet = false
	properties, warnings := commandLines(d.Type, properties)
	warnings = append(warnings, numbersOfTemplates(d.properties, properties)...)
	if b.session.forOtherNode && reason == "" {
		b.session.declared = append(b.session.declared, properties)
	}
	if b.scope.element != nil {
		b.session.common.loops.count(properties)
	}
	name, sure := name(&r, properties)
	at := len(b.links)
	if sure {
		b.link(model.Ref{Type: d.Type.Name, Name: name}, d.pos, properties, r.waits)
	}
	b.openEnded = b.openEnded || !sure
	if !sure && b.excluded != "" {
		return // the condition of its group guards the name
	}

	res, problems := decode(d.Type, properties, d.pos, b.observeOnly)
	if len(r.failed) > 0 {
		problems = ownProblems(r.failed, d, properties, problems)
	}
	b.problems.Append(append(r.problems, problems...)...)
	if reason == "" {
		b.checkSource(properties)
	}
	shell := reason != "" || (d.Type.Include != nil && sure)
	switch {
	case len(r.problems)+len(problems) > 0 || !ok, !shell && (res == nil || len(r.failed) > 0):
		b.openEnded = b.openEnded || d.Type.Include != nil
		return
	case res == nil:
		res = &resource.Resource{Type: d.Type, Spec: d.Type.New(), Pos: d.pos}
		res.Meta().Name = name
	}
	res.Excluded = reason
	noop, _ := properties.Get("noop")
	res.NeverNoop = noop.Kind != document.Null && !res.Meta().Noop
	b.session.inherit(res.Meta())
	if len(r.waits) > 0 && reason == "" {
		b.wait(res, d, properties, r.waits)
	}
	b.addResource(res, properties)
	if reason == "" {
		b.out.Warnings.Append(warnings...)
	}
	if len(b.links) > at {
		b.links[at].Resource, b.links[at].Ref = res, res.Ref()
	}
}

// ownProblems returns the problems of a resource without those that a failed expression causes. A
// failed value looks deferred, and validation then reports consequences. So ownProblems decodes the
// resource again without the failed values, and keeps the problems of the remaining properties.
func ownProblems(unresolved []model.Position, d declaration, properties document.Value, problems model.Problems) model.Problems {
	failed := slices.Clone(unresolved)
	sound := properties
	sound.Entries = nil
	var places []model.Position
	for _, e := range properties.Entries {
		switch {
		case !holdsFailed(e.Value, unresolved):
			sound.Entries = append(sound.Entries, e)
			// A failed value may cause the problem of the name.
			if e.Key != keyName {
				places = append(places, e.Value.Pos)
			}
		case e.Key == keyName:
			e.Value.Deferred = false
			sound.Entries = append(sound.Entries, e)
			failed = append(failed, e.Value.Pos)
		default:
			failed = append(failed, e.Value.Pos)
		}
	}
	problems = slices.DeleteFunc(problems, func(p model.Problem) bool { return slices.Contains(failed, p.Pos) })
	_, more := resource.Decode(d.Type, sound, d.pos)
	for _, p := range more {
		if slices.Contains(places, p.Pos) {
			problems = append(problems, p)
		}
	}

	return problems
}

func holdsFailed(v document.Value, failed []model.Position) bool {
	return slices.Contains(failed, v.Pos) ||
		slices.ContainsFunc(v.Items, func(item document.Value) bool { return holdsFailed(item, failed) }) ||
		slices.ContainsFunc(v.Entries, func(e document.Entry) bool { return holdsFailed(e.Value, failed) })
}

// name returns the name of a resource. It reports a secret or deferred name.
func name(r *resolver, properties document.Value) (text string, sure bool) {
	v, _ := properties.Get(keyName)
	switch {
	case slices.Contains(r.failed, v.Pos) && v.Deferred:
		if r.forgiving && len(r.problems) == 0 {
			r.problems.Add(v.Pos, "an excluded resource also needs a name", "the expression of the name fails")
		}
	case v.Deferred:
		r.fail(v.Pos, "take the name from data or facts", "`name` must be known before the run")
	case v.Secret:
		r.fail(v.Pos, "names are shown in logs and reports", "`name` cannot be secret")
	default:
		return v.Text, true
	}

	return v.Text, false
}

// wait makes a resource require others, and resolves its properties after they have run.
func (b *build) wait(res *resource.Resource, d declaration, properties document.Value, waits []resource.Reference) {
	var refs []model.Ref
	for _, w := range waits {
		refs = append(refs, w.Ref)
	}
	res.Taken = waits
	for _, e := range properties.Entries {
		if p, known := d.Type.Property(e.Key); known && e.Value.IsDeferred() {
			res.Waiting = append(res.Waiting, p.Key)
		}
	}
	requireAlso(res.Spec, refs)
	s, data, element := b.session, b.out.Data, b.scope.element
	res.ResolveDeferred = func(ctx context.Context, outputs resource.Outputs) (resource.Spec, []model.Secret, error) {
		if outputs == nil {
			outputs = resource.Outputs{}
		}
		sc := s.newScope(ctx, inResources, data, outputs)
		sc.setElement(element)
		return s.resolveDeferred(ctx, d, sc, refs)
	}
}

func requireAlso(spec resource.Spec, refs []model.Ref) {
	meta := spec.Meta()
	for _, ref := range refs {
		if !slices.Contains(meta.Require, ref) {
			meta.Require = append(meta.Require, ref)
		}
	}
}

// unevaluated returns the keys that Mapping must not evaluate: literal properties, and control,
// which Excluded evaluates.
func unevaluated(t *resource.Type) []string {
	out := []string{keyControl}
	for i := range t.Properties {
		if p := &t.Properties[i]; p.Literal {
			out = append(append(out, p.Key), p.Aliases...)
		}
	}

	return out
}

func (s *session) resolveDeferred(ctx context.Context, d declaration, sc *scope, refs []model.Ref) (resource.Spec, []model.Secret, error) {
	r := resolver{scope: sc}
	properties, _ := r.mapping(ctx, d.properties, unevaluated(d.Type)...)
	switch {
	case len(r.problems) > len(r.missing):
		return nil, nil, tidyProblems(s.printed.problems(r.problems))
	case len(r.missing) > 0:
		return nil, nil, resource.PrerequisiteError{Needs: append([]string{resource.PathNeed(r.missing[0])}, absentAbove(r.missing[0])...), Err: tidyProblems(s.printed.problems(r.problems))}
	}
	properties, _ = commandLines(d.Type, properties)
	res, problems := resource.Decode(d.Type, properties, d.pos)
	if len(problems) > 0 {
		return nil, nil, tidyProblems(problems)
	}
	requireAlso(res.Spec, refs)
	s.inherit(res.Meta())
	s.noteSensitive(res)

	return res.Spec, append(res.Secrets, s.Secrets()...), nil
}

func absentAbove(path string) (needs []string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return needs
		}
		needs = append(needs, resource.PathNeed(dir))
	}
}

func (s *session) noteSensitive(res *resource.Resource) {
	if res.Sensitive() {
		s.common.sensitive[res.Ref()] = true
	}
}

func (b *build) addResource(res *resource.Resource, properties document.Value) {
	res.Scope = b.session.resourceScope
	if res.Type.Include != nil {
		res.Instance = b.session.common.instance(res)
	}
	b.session.noteSensitive(res)
	b.own = append(b.own, res)
	b.values = append(b.values, properties)
	if res.Type.Relations != nil && res.Excluded == "" {
		b.session.common.provide(res)
	}
	if w, ok := res.Spec.(warner); ok && res.Excluded == "" && res.ResolveDeferred == nil {
		b.warn(res, properties, w.Warnings())
	}
}

// warn sets the positions of the warnings of a resource to its properties.
func (b *build) warn(res *resource.Resource, properties document.Value, warnings model.Problems) {
	for _, w := range warnings {
		if w.Pos.IsZero() {
			w.Pos = res.Pos
			for _, e := range properties.Entries {
				if sameProperty(res.Type, e.Key, w.Property) {
					w.Pos = e.Value.Pos
				}
			}
		}
		b.out.Warnings = append(b.out.Warnings, w)
	}
}

// commandLines returns properties with command lines in which each inserted value stays one argument: it
// quotes a line that would otherwise split differently. It warns about quoted lines, and about shell
// syntax in lines that no shell runs.
func commandLines(t *resource.Type, properties document.Value) (document.Value, model.Problems) {
	var l lines
	provider, _ := properties.Get("provider")
	splits := func(p resource.Property) bool {
		return p.Line == "any" || p.Line != "" && (provider.Text == "" || provider.Text == p.Line)
	}
	properties.Entries = slices.Clone(properties.Entries)
	for i := range properties.Entries {
		e := &properties.Entries[i]
		switch p, _ := t.Property(e.Key); {
		case p.Key == "health_checks":
			e.Value = l.within(e.Value, "command", p)
		case splits(p):
			e.Value = l.within(e.Value, "", p)
		}
	}
	for _, p := range t.Properties {
		line, _ := properties.Get(p.Key)
		list, _ := properties.Get(p.List)
		if p.List == "" || line.Kind != document.Null || list.Kind != document.Null || !splits(p) {
			continue
		}
		name, _ := properties.Get("name")
		if line = l.line(name, p); line.Text != name.Text {
			properties.Entries = append(properties.Entries, document.Entry{Key: p.Key, Pos: name.Pos, Value: line})
		}
	}

	return properties, l.warnings
}

// lines checks command lines.
type lines struct{ warnings model.Problems }

// within checks the command lines in a value. In a mapping it handles one key, or all keys if key is
// empty.
func (l *lines) within(v document.Value, key string, p resource.Property) document.Value {
	v.Items, v.Entries = slices.Clone(v.Items), slices.Clone(v.Entries)
	for i := range v.Items {
		v.Items[i] = l.within(v.Items[i], key, p)
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; key == "" || e.Key == key {
			e.Value = l.within(e.Value, "", p)
		}
	}

	return l.line(v, p)
}

// line returns a command line that splits into the same arguments without the marks of inserted
// values. A line that cannot be split stays invalid.
func (l *lines) line(v document.Value, p resource.Property) document.Value {
	if v.Kind != document.String || v.Deferred {
		return v
	}
	var inserted document.Inserted
	if v.Inserted != nil {
		inserted = *v.Inserted
	}
	l.checkShell(v, p, inserted)
	if inserted == nil || v.Text == "" {
		return v
	}
	words, err := command.Split(v.Text, inserted...)
	plain, plainErr := command.Split(v.Text)
	switch {
	case errors.Is(err, command.ErrNUL), err == nil && plainErr == nil && slices.Equal(words, plain):
	case errors.Is(err, command.ErrNoProgram):
		v.Text = "''"
	case err != nil:
		for _, part := range slices.Backward(inserted) {
			v.Text = v.Text[:part[0]] + "x" + v.Text[part[1]:]
		}
	default:
		v.Text = command.Join(words)
		hint := "quote the value, or use one expression per argument"
		if p.List != "" {
			hint = "list the arguments in `" + p.List + "`, or quote the value"
		}
		l.warnings.Add(v.Pos, hint, "a value in this command has blanks or quotes, or is empty; it stays one argument")
	}
	v.Inserted = nil

	return v
}

// checkShell warns about shell syntax outside of inserted values.
func (l *lines) checkShell(v document.Value, p resource.Property, inserted document.Inserted) {
	found := command.ShellSyntax(v.Text, inserted...)
	if found == "" {
		return
	}
	word, hint := "`"+found+"`", "run it with `sh -c`, or put it in single quotes"
	if found == "`" {
		word = "a backtick"
	}
	if p.Line == "posix" {
		hint = "set `provider: shell`, or put it in single quotes"
	}
	l.warnings.Add(v.Pos, hint, "%s is passed to the program as an argument: no shell runs this command", word)
}
