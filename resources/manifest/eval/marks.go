package eval

import (
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// mark marks what depends on a secret in the value of an expression: all of it
// when the expression uses one, but the values of a literal mapping each by
// what they are made from.
func (sc *Scope) mark(v *resource.Value, node ast.Node) {
	literal, is := node.(*ast.MapNode)
	if !is || v.Kind != resource.Map {
		if sc.uses(node) {
			markAll(v)
		}
		return
	}
	for _, each := range literal.Pairs {
		pair, _ := each.(*ast.PairNode)
		key, constant := pair.Key.(*ast.StringNode)
		i := slices.IndexFunc(v.Entries, func(e resource.Entry) bool { return constant && e.Key == key.Value })
		if i < 0 {
			markAll(v)
			return
		}
		sc.mark(&v.Entries[i].Value, pair.Value)
	}
}

// uses reports whether an expression names a secret of the data, a mapping or
// list that holds one, or all that there is, or calls what returned one.
func (sc *Scope) uses(node ast.Node) bool {
	found := sources{paths: map[ast.Node][]string{}}
	ast.Walk(&node, &found)
	for _, path := range found.paths {
		at := sc.data
		for _, key := range path {
			at = template.Key(at, key)
		}
		if template.Holds(at) {
			return true
		}
	}

	return found.calls && sc.used || found.all && sc.secret
}

// sources are what an expression is made from.
type sources struct {
	// paths are the chains of constant keys below Data, by their outermost node.
	paths map[ast.Node][]string
	// all reports whether all names are used at once.
	all bool
	// calls reports whether there is a function that may return a secret.
	calls bool
}

// Visit is called for every node, inner ones first.
func (s *sources) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == expression.NameData {
			s.paths[n] = nil
		}
		s.all = s.all || n.Value == "$env"
		s.calls = s.calls || slices.Contains([]string{"lookup", "secret", "readFile", "file", expression.NameOutputs, expression.NameTemplate, expression.NameJet}, n.Value)
	case *ast.MemberNode:
		path, known := s.paths[n.Node]
		key, constant := "", false
		switch property := n.Property.(type) {
		case *ast.StringNode:
			key, constant = property.Value, true
		case *ast.IntegerNode:
			key, constant = strconv.Itoa(property.Value), true
		}
		if known && constant {
			delete(s.paths, n.Node)
			s.paths[n] = append(path[:len(path):len(path)], key)
		}
	}
}
