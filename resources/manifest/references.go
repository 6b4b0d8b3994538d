package manifest

import (
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

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
		b.session.aliases[model.Ref{Type: ref.Type, Name: alias.Text}] = ref
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
