package manifest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

// The limits of each.
const (
	// maxElements limits one list or mapping, and maxGroups the groups within one another.
	maxElements = 10_000
	maxGroups   = 5
	// maxRepeated limits the resources and groups of all elements in a manifest with its children, and
	// maxBytesOfEach the properties of these resources.
	maxRepeated    = 100_000
	maxBytesOfEach = 256 << 20
)

// element is an element of each, which expressions see by the name each.
type element struct {
	// key is the position in a list, or the key in a mapping.
	key any
	// value is the value, with secrets marked.
	value any
	// outer is the element of the surrounding group, or nil.
	outer *element
	// isUnknown means that the elements depend on another node.
	isUnknown bool
}

// names returns the value of the name each. reveal returns the text of a secret; nil keeps secrets marked.
func (e *element) names(reveal func(model.Secret) string) map[string]any {
	out := map[string]any{"key": e.key, "value": e.value}
	if reveal != nil {
		out["value"] = template.Reveal(e.value, reveal)
	}
	if e.outer != nil {
		out["parent"] = e.outer.names(reveal)
	}

	return out
}

// holdsSecret reports whether expressions can see a secret by the name each.
func (e *element) holdsSecret() bool {
	return e != nil && (template.Holds(e.value) || e.outer.holdsSecret())
}

// label names the element in problems: its keys, the outermost first. It is empty without an element.
func (e *element) label() string {
	if e == nil || e.isUnknown {
		return ""
	}
	label := fmt.Sprint(e.key)
	if outer := e.outer.label(); outer != "" {
		label = outer + "." + label
	}

	return label
}

// setElement makes an element visible to expressions; nil hides it.
func (sc *scope) setElement(e *element) {
	sc.element = e
	delete(sc.known, expression.NameEach)
	if e != nil {
		sc.known[expression.NameEach] = e.names(sc.reveal)
	}
}

// use returns the use of expressions that see the element.
func (e *element) use() use {
	if e == nil {
		return anywhere
	}

	return ofElement
}

// isMissing reports whether a program uses an unknown element.
func (e *element) isMissing(p *expression.Program) bool {
	return e != nil && e.isUnknown && p.Names[expression.NameEach]
}

// declareAll adds the resources of declarations, once for each element of each.
func (b *build) declareAll(ctx context.Context, all []declaration) {
	outer := b.scope.element
	for _, d := range all {
		elements := []*element{outer}
		if d.each != nil {
			b.noting(outer, func() { elements = b.elements(ctx, *d.each, outer) })
		}
		if len(elements) > 1 && d.group == nil && d.Type.Include == nil && d.isNamedWithoutEach() {
			b.noting(outer, func() {
				b.problems.Add(d.pos, "use `each.key` or `each.value` in the name", "all %d elements of `each` give one name", len(elements))
			})
			continue
		}
		for _, e := range elements {
			if context.Cause(ctx) != nil {
				return
			}
			if loops := &b.session.common.loops; e != nil && !loops.allows() {
				b.found.add(nil, loops.report(d.pos))
				return
			}
			b.scope.setElement(e)
			if d.group != nil {
				b.addGroup(ctx, d)
			} else {
				b.noting(e, func() { b.add(ctx, d) })
			}
		}
		b.scope.setElement(outer)
	}
}

// loopLimit counts what all loops of a manifest and of its children give.
type loopLimit struct {
	resources, bytes int
	// isReported is set after the problem of the limit.
	isReported bool
}

// allows counts a resource or group, and reports whether the limit allows it.
func (l *loopLimit) allows() bool {
	l.resources++

	return l.resources <= maxRepeated && l.bytes <= maxBytesOfEach
}

// count counts the properties of a resource.
func (l *loopLimit) count(v document.Value) {
	const overhead = 64
	l.bytes += overhead + len(v.Text)
	for _, item := range v.Items {
		l.count(item)
	}
	for _, e := range v.Entries {
		l.bytes += len(e.Key)
		l.count(e.Value)
	}
}

// report returns the problem of the limit at the first call.
func (l *loopLimit) report(pos model.Position) (out model.Problems) {
	if !l.isReported {
		l.isReported = true
		out.Add(pos, "split the manifest", "the loops of a manifest give at most %d resources, with %d MiB of properties", maxRepeated, maxBytesOfEach>>20)
	}

	return out
}

// addGroup adds the resources of a group. Its control excludes all of them, before their names are resolved.
func (b *build) addGroup(ctx context.Context, d declaration) {
	before := b.excluded
	defer func() { b.excluded = before }()
	if before != "" {
		b.declareAll(ctx, d.group)
		return
	}
	isSound := true
	b.noting(b.scope.element, func() {
		r := resolver{scope: b.scope}
		reason, ok := r.excluded(ctx, d.properties)
		b.problems.Append(r.problems...)
		b.excluded, isSound = reason, ok
	})
	if !isSound {
		b.openEnded = true
		return
	}
	b.declareAll(ctx, d.group)
}

// elements returns the elements of each. It reports a value that has none, and returns one unknown element if
// the value depends on another node.
func (b *build) elements(ctx context.Context, each document.Value, outer *element) []*element {
	r := resolver{scope: b.scope, forgiving: b.excluded != ""}
	values, isChain := b.scope.chain(each)
	if !isChain {
		v, _ := r.value(ctx, each)
		b.problems.Append(r.problems...)
		switch {
		case len(r.problems) > 0 || b.scope.broken && holdsFailed(v, r.failed):
			b.openEnded = true
			return nil
		case holdsFailed(v, r.failed) && r.forgiving:
			b.openEnded = true
			return nil
		case holdsFailed(v, r.failed):
			b.openEnded = true
			b.out.Warnings.Add(each.Pos, "run `muster apply --noop` on a node to check each element", "the elements of `each` depend on the node: these resources were checked once, without an element")
			return []*element{{outer: outer, isUnknown: true}}
		case v.IsDeferred():
			b.openEnded = true
			b.problems.Add(each.Pos, "take it from data or facts", "`each` must be known before the run")
			return nil
		case v.Kind == document.Map && b.scope.tookSecret(each):
			b.problems.Add(each.Pos, "use a path such as Data.users, or a list", "the keys of `each` may be secret, and names and problems show them")
			return nil
		}
		values = v.Plain()
	}
	var out []*element
	switch all := values.(type) {
	case nil:
	case []any:
		for i, value := range all {
			out = append(out, &element{key: i, value: value, outer: outer})
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(all)) {
			out = append(out, &element{key: key, value: all[key], outer: outer})
		}
	default:
		b.problems.Add(each.Pos, "for example each: [a, b], or each: \"${ Data.users }\"", "`each` must be a list or a mapping, not %s", expression.KindOf(values))
	}
	if len(out) > maxElements {
		b.problems.Add(each.Pos, "split it", "`each` has %d elements, more than %d", len(out), maxElements)
		return nil
	}

	return out
}

// tookSecret reports whether the last expression, which is the whole text, uses a secret.
func (sc *scope) tookSecret(v document.Value) bool {
	parts, _, _ := expression.Scan(v.Text)
	if v.Kind != document.String || len(parts) != 1 {
		return false
	}

	return sc.used || sc.uses(sc.Program(parts[0].Expr, sc.element.use()).Node())
}

// chain returns the value of a text that is only a path below Data or each, with its secrets marked: unlike the
// result of any other expression, it is not secret as a whole.
func (sc *scope) chain(v document.Value) (value any, is bool) {
	parts, _, ok := expression.Scan(v.Text)
	if v.Kind != document.String || !ok || len(parts) != 1 || !parts[0].IsExpr || sc.broken {
		return nil, false
	}
	p := sc.Program(parts[0].Expr, sc.element.use())
	if p.Message != "" {
		return nil, false
	}
	path := expression.ChainOf(p.Node())
	if len(path) == 0 || sc.element != nil && sc.element.isUnknown {
		return nil, false
	}
	sc.noteData(p.DataPaths...)

	return expression.Find(sc.marked(), path)
}

// marked returns the roots of expressions that may hold secrets, with the secrets marked.
func (sc *scope) marked() map[string]any {
	out := map[string]any{expression.NameData: sc.data}
	if sc.element != nil {
		out[expression.NameEach] = sc.element.names(nil)
	}

	return out
}

// elementProblems collects problems with the elements that have them.
type elementProblems struct {
	all    []model.Problem
	labels map[problemText][]string
}

type problemText struct {
	pos           model.Position
	message, hint string
}

// noting calls add and records the element that has its problems.
func (b *build) noting(e *element, add func()) {
	before := b.problems
	b.problems = nil
	add()
	b.found.add(e, b.problems)
	b.problems = before
}

// add records problems of an element.
func (f *elementProblems) add(e *element, problems model.Problems) {
	for _, p := range problems {
		text := problemText{p.Pos, p.Message, p.Hint}
		if f.labels == nil {
			f.labels = map[problemText][]string{}
		}
		if _, again := f.labels[text]; !again {
			f.all = append(f.all, p)
		}
		f.labels[text] = append(f.labels[text], e.label())
	}
}

// problems returns each problem once, with its elements.
func (f *elementProblems) problems() model.Problems {
	var out model.Problems
	for _, p := range f.all {
		labels := f.labels[problemText{p.Pos, p.Message, p.Hint}]
		switch {
		case labels[0] == "":
		case len(labels) == 1:
			p.Message += " (each: " + labels[0] + ")"
		default:
			p.Message += fmt.Sprintf(" (each: %s and %d more)", labels[0], len(labels)-1)
		}
		out.Append(p)
	}

	return out
}

// isNamedWithoutEach reports whether the name is the same for all elements.
func (d *declaration) isNamedWithoutEach() bool {
	name, _ := d.properties.Get(keyName)

	return !expression.MayHoldExpression(name.Text)
}
