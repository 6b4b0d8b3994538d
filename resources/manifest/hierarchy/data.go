package hierarchy

import (
	"context"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/eval"
	"github.com/musterfleet/muster/resources/manifest/syntax"
)

// Resolve returns the data of a document: base data, overrides in the order
// of the hierarchy, external data over all.
//
// With merge first, the first match replaces the keys of the base that it has;
// with deep, every match is merged into it, the earliest in the order having
// the last word. A deep merge goes into mappings and replaces everything else.
func Resolve(ctx context.Context, w *eval.World, external map[string]any) (map[string]any, model.Problems) {
	r := eval.Resolver{Scope: w.Scope(ctx, eval.InData, nil, nil)}
	data := r.Object(ctx, w.Doc.Data)

	order := eval.Resolver{Scope: w.Scope(ctx, eval.InResources, Merge(data, external), nil)}
	order.Scope.Broken = len(r.Problems) > 0 || w.Unsure
	taken := matches(ctx, &order)
	r.Problems = append(r.Problems, order.Problems...)
	r.Problems = append(r.Problems, checkUnused(ctx, w, taken)...)
	if w.Doc.Merge == syntax.MergeFirst && len(taken) > 1 {
		taken = taken[:1]
	}
	for i := len(taken) - 1; i >= 0; i-- {
		over := r.Object(ctx, taken[i].values)
		if w.Doc.Merge == syntax.MergeDeep {
			data = Merge(data, over)
			continue
		}
		maps.Copy(data, over)
	}
	data = Merge(data, external)
	problems := r.Problems
	if len(problems) == 0 && !w.Unsure {
		problems = checkAnnotations(ctx, w, data, taken)
	}

	return data, problems
}

// override is one of the document.
type override struct {
	name   string
	values document.Node
}

// matches returns the overrides that the hierarchy names, the first with the highest priority.
func matches(ctx context.Context, r *eval.Resolver) []override {
	var out []override
	seen := map[string]bool{}
	for item := range r.Scope.Doc.Order.Values() {
		name, _ := r.Value(ctx, item)
		switch {
		case name.Late:
			continue
		case !name.IsScalar():
			r.Problems.Add(item.Pos, "", "an entry of `order` must be text, not %s", name.Kind)
			continue
		case seen[name.Text]:
			continue
		}
		seen[name.Text] = true
		if v, ok := r.Scope.Doc.Overrides.Get(name.Text); ok && v.Kind() == document.Map {
			out = append(out, override{name.Text, v})
		}
	}

	return out
}

// checkUnused compiles the expressions of overrides that are not taken here,
// so that a mistake in them is found before the node that takes them has it.
func checkUnused(ctx context.Context, w *eval.World, matches []override) model.Problems {
	r := eval.Resolver{Scope: w.Scope(ctx, eval.InData, nil, nil), CompileOnly: true}
	for key, v := range w.Doc.Overrides.Entries() {
		name := key.Text()
		if !slices.ContainsFunc(matches, func(taken override) bool { return taken.name == name }) {
			r.Plain(ctx, v)
		}
	}

	return r.Problems
}

// Merge returns base with over merged into it; neither is changed.
func Merge(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	maps.Copy(out, base)
	for k, v := range over {
		under, isMap := out[k].(map[string]any)
		if m, ok := v.(map[string]any); ok && isMap {
			out[k] = Merge(under, m)
			continue
		}
		out[k] = v
	}

	return out
}
