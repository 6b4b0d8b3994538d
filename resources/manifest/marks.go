package manifest

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/template"
)

// mark marks what depends on a secret in the value of an expression: all of it
// when the expression uses one, but the values of a literal mapping each by
// what they are made from.
func (sc *scope) mark(v *document.Value, node ast.Node) {
	literal, is := node.(*ast.MapNode)
	if !is || v.Kind != document.Map {
		if sc.uses(node) {
			markAll(v)
		}
		return
	}
	for _, each := range literal.Pairs {
		pair, _ := each.(*ast.PairNode)
		key, constant := pair.Key.(*ast.StringNode)
		i := slices.IndexFunc(v.Entries, func(e document.Entry) bool { return constant && e.Key == key.Value })
		if i < 0 {
			markAll(v)
			return
		}
		sc.mark(&v.Entries[i].Value, pair.Value)
	}
}

// uses reports whether an expression names a secret of the data, a mapping or
// list that holds one, or all that there is, or calls what returned one.
func (sc *scope) uses(node ast.Node) bool {
	found := expression.SourcesOf(node)
	for _, path := range found.Paths {
		at := sc.data
		for _, key := range path {
			at = template.Key(at, key)
		}
		if template.Holds(at) {
			return true
		}
	}

	return found.Calls && sc.used || found.All && sc.secret
}

// markAll marks every scalar of v as one that came of a secret.
func markAll(v *document.Value) {
	v.EachScalar(func(s *document.Value) { s.Secret, s.Derived = true, true })
}
