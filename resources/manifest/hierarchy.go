package manifest

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
)

// defaultOverride is the only entry of the default order.
const defaultOverride = "default"

// resolveData returns the data of a document: base data, overrides in the order of the hierarchy,
// then external data.
//
// With merge first, the first match replaces the keys of the base that it sets. With deep, all
// matches are merged in order, so the last match wins.
func resolveData(ctx context.Context, w *evaluator, external map[string]any) (data map[string]any, problems, warnings model.Problems) {
	r := resolver{scope: w.newScope(ctx, inData, nil, nil)}
	data = r.object(ctx, w.doc.Data)

	order := resolver{scope: w.newScope(ctx, inResources, mergeData(data, external), nil), skipLackingFacts: true}
	order.scope.broken = len(r.problems) > 0 || w.unsure
	taken := matches(ctx, &order)
	r.problems = append(r.problems, order.problems...)
	r.problems = append(r.problems, checkUnused(ctx, w, taken)...)
	if w.doc.Merge == mergeFirst && len(taken) > 1 {
		taken = taken[:1]
	}
	for i := range taken {
		over := r.object(ctx, taken[i].values)
		if w.doc.Merge == mergeDeep {
			taken[i].below = data
			data = mergeData(data, over)
			continue
		}
		maps.Copy(data, over)
	}
	data = mergeData(data, external)
	if len(r.problems) == 0 && !w.unsure {
		r.problems = checkAnnotations(ctx, w, data, taken)
	}

	return data, r.problems, unnamed(w.doc)
}

type override struct {
	name   string
	values document.Value
	// below are the data that it was merged into; nil with merge first.
	below map[string]any
}

// matches returns the overrides that the hierarchy names, in order.
func matches(ctx context.Context, r *resolver) []override {
	var out []override
	seen := map[string]bool{}
	for _, item := range entries(r.scope.doc) {
		name, _ := r.value(ctx, item)
		switch {
		case name.Deferred:
			continue
		case !name.IsScalar():
			r.problems.Add(item.Pos, "", "an entry of `order` must be text, not %s", name.Kind)
			continue
		case seen[name.Text]:
			continue
		}
		seen[name.Text] = true
		if v, ok := r.scope.doc.Overrides.Get(name.Text); ok && v.Kind == document.Map {
			out = append(out, override{name: name.Text, values: v})
		}
	}

	return out
}

func entries(doc *Document) []document.Value {
	if len(doc.Order.Items) == 0 {
		return []document.Value{{Kind: document.String, Text: defaultOverride}}
	}

	return doc.Order.Items
}

// unnamed returns a warning for each override that no entry of the order can name.
func unnamed(doc *Document) model.Problems {
	var patterns []string
	for _, entry := range entries(doc) {
		parts, _, ok := expression.Scan(entry.Text)
		if !ok || !entry.IsScalar() {
			return nil // reported as a problem
		}
		pattern := ""
		for _, p := range parts {
			if p.IsExpr {
				pattern += ".*"
			} else {
				pattern += regexp.QuoteMeta(p.Literal)
			}
		}
		patterns = append(patterns, pattern)
	}
	names := regexp.MustCompile("(?s)^(?:" + strings.Join(patterns, "|") + ")$")
	var out model.Problems
	for _, e := range doc.Overrides.Entries {
		if !names.MatchString(e.Key) && !expression.MayHoldExpression(e.Key) {
			out.Add(e.Pos, "add it to `hierarchy.order`, or remove it", "no entry of `order` names the override `%s`, so it is never used", e.Key)
		}
	}

	return out
}

// checkUnused compiles the expressions of unused overrides, to report their mistakes before another
// node uses them.
func checkUnused(ctx context.Context, w *evaluator, matches []override) model.Problems {
	r := resolver{scope: w.newScope(ctx, inData, nil, nil), compileOnly: true}
	for _, e := range w.doc.Overrides.Entries {
		if !slices.ContainsFunc(matches, func(taken override) bool { return taken.name == e.Key }) {
			r.value(ctx, e.Value)
		}
	}

	return r.problems
}

// mergeData returns base with over merged into it and changes neither. It merges mappings, appends
// lists, and replaces other values.
func mergeData(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	maps.Copy(out, base)
	for k, v := range over {
		switch v := v.(type) {
		case map[string]any:
			if under, ok := out[k].(map[string]any); ok {
				out[k] = mergeData(under, v)
				continue
			}
		case []any:
			if under, ok := out[k].([]any); ok {
				out[k] = append(append(make([]any, 0, len(under)+len(v)), under...), v...)
				continue
			}
		}
		out[k] = v
	}

	return out
}
