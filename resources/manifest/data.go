package manifest

import (
	"context"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// resolveData gives the data of a document: base data, overrides in the order
// of the hierarchy, external data over all.
//
// With merge first, the first match replaces the keys of the base that it has;
// with deep, every match is merged into it, the earliest in the order having
// the last word. A deep merge goes into mappings and replaces everything else.
func resolveData(ctx context.Context, w *world, external map[string]any) (map[string]any, model.Problems) {
	r := resolver{scope: w.scope(ctx, inData, nil, nil)}
	resolved, _ := r.value(ctx, w.doc.data)
	data := toObject(resolved)

	order := resolver{scope: w.scope(ctx, inResources, mergeDeep(data, external), nil)}
	order.scope.broken = len(r.problems) > 0 || w.unsure
	taken := matches(ctx, &order)
	r.problems = append(r.problems, order.problems...)
	checkUnused(w, taken, &r.problems)
	if w.doc.merge == MergeFirst && len(taken) > 1 {
		taken = taken[:1]
	}
	for i := len(taken) - 1; i >= 0; i-- {
		v, _ := r.value(ctx, taken[i].Value)
		over := toObject(v)
		if w.doc.merge == MergeDeep {
			data = mergeDeep(data, over)
			continue
		}
		maps.Copy(data, over)
	}
	data = mergeDeep(data, external)
	problems := r.problems
	if len(problems) == 0 && !w.unsure {
		problems = checkAnnotations(ctx, w, data, taken)
	}

	return data, problems
}

// matches gives the overrides that the hierarchy names, the first with the highest priority.
func matches(ctx context.Context, r *resolver) []resource.Entry {
	var out []resource.Entry
	seen := map[string]bool{}
	for _, item := range r.scope.doc.order {
		name, _ := r.value(ctx, item)
		switch {
		case name.Late:
			continue
		case !name.IsScalar():
			r.problems.Add(item.Pos, "", "an entry of `order` must be text, not %s", name.Kind)
			continue
		case seen[name.Text]:
			continue
		}
		seen[name.Text] = true
		for _, o := range r.scope.doc.overrides.Entries {
			if o.Key == name.Text && o.Value.Kind == resource.Map {
				out = append(out, o)
			}
		}
	}

	return out
}

// checkUnused compiles the expressions of overrides that are not taken here,
// so that a mistake in them is found before the node that takes them has it.
func checkUnused(w *world, matches []resource.Entry, problems *model.Problems) {
	for _, o := range w.doc.overrides.Entries {
		if !slices.ContainsFunc(matches, func(taken resource.Entry) bool { return taken.Key == o.Key }) {
			checkExpressions(w.doc, o.Value, problems)
		}
	}
}

// checkExpressions reports what is wrong with expressions without evaluating them.
func checkExpressions(doc *Document, v resource.Value, problems *model.Problems) {
	for _, item := range v.Items {
		checkExpressions(doc, item, problems)
	}
	for _, e := range v.Entries {
		checkExpressions(doc, e.Value, problems)
	}
	if v.Kind != resource.String || !mayHoldExpression(v.Text) {
		return
	}
	parts, at, ok := scan(v.Text)
	if !ok {
		problems.Add(doc.place(v.Pos, v.Text, at), "close it with `"+closing(v.Text[at:])+"`, or "+literalHint(v.Text[at:]), "the expression that begins here does not end")
	}
	for _, p := range parts {
		if !p.isExpr {
			continue
		}
		if program := compileHere(p.expr, false); program.message != "" {
			problems.Add(doc.place(v.Pos, v.Text, p.at), program.advice(v.Text[p.at:]), "the expression is not valid: %s", program.message)
		}
	}
}

// mergeDeep gives base with over merged into it; neither is changed.
func mergeDeep(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	maps.Copy(out, base)
	for k, v := range over {
		under, isMap := out[k].(map[string]any)
		if m, ok := v.(map[string]any); ok && isMap {
			out[k] = mergeDeep(under, m)
			continue
		}
		out[k] = v
	}

	return out
}
