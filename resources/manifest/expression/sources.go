package expression

import (
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// Sources are the inputs of an expression.
type Sources struct {
	// Paths are the chains of constant keys below Data, by their outermost node.
	Paths map[ast.Node][]string
	// All reports whether the expression uses $env, which contains all names.
	All bool
	// Calls reports whether the expression calls a function that may return a secret.
	Calls bool
}

// SourcesOf returns the sources of an expression.
func SourcesOf(node ast.Node) Sources {
	found := Sources{Paths: map[ast.Node][]string{}}
	ast.Walk(&node, &found)

	return found
}

// Visit is called for every node, inner ones first.
func (s *Sources) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == NameData {
			s.Paths[n] = nil
		}
		s.All = s.All || n.Value == "$env"
		s.Calls = s.Calls || slices.Contains([]string{"lookup", "secret", "readFile", "file", NameOutputs, NameTemplate, NameJet}, n.Value)
	case *ast.MemberNode:
		path, known := s.Paths[n.Node]
		key, constant := "", false
		switch property := n.Property.(type) {
		case *ast.StringNode:
			key, constant = property.Value, true
		case *ast.IntegerNode:
			key, constant = strconv.Itoa(property.Value), true
		}
		if known && constant {
			delete(s.Paths, n.Node)
			s.Paths[n] = append(path[:len(path):len(path)], key)
		}
	}
}
