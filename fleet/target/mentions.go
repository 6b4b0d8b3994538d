package target

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Mentions are the names of facts, labels, groups and packages in an expression.
type Mentions struct {
	// Facts are paths, split into their names. A path follows its own prefixes.
	Facts                    [][]string
	Labels, Groups, Packages []string
}

// note adds the name in a node of the tree.
func (m *Mentions) note(node ast.Node) {
	switch n := node.(type) {
	case *ast.MemberNode:
		if of, ok := n.Node.(*ast.IdentifierNode); ok && of.Value == "labels" {
			addText(&m.Labels, n.Property)
		}
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok && callee.Value == "group" && len(n.Arguments) == 1 {
			addText(&m.Groups, n.Arguments[0])
		}
		if packageCall(n) != nil && len(n.Arguments) == 1 {
			addText(&m.Packages, n.Arguments[0])
		}
		if path := factPath(n); len(path) > 0 && !slices.ContainsFunc(m.Facts, func(known []string) bool { return slices.Equal(known, path) }) {
			m.Facts = append(m.Facts, path)
		}
	case *ast.BinaryNode:
		if list, ok := n.Right.(*ast.IdentifierNode); ok && n.Operator == "in" && list.Value == "groups" {
			addText(&m.Groups, n.Left)
		}
	}
}

// addText adds the value of a literal text, once.
func addText(to *[]string, node ast.Node) {
	if text, ok := node.(*ast.StringNode); ok && !slices.Contains(*to, text.Value) {
		*to = append(*to, text.Value)
	}
}

// factPath returns the names in a path of facts, nil for any other node.
func factPath(node ast.Node) []string {
	n, ok := node.(*ast.CallNode)
	if !ok || len(n.Arguments) != 2 {
		return nil
	}
	callee, ok := n.Callee.(*ast.IdentifierNode)
	name, isText := n.Arguments[1].(*ast.StringNode)
	if !ok || callee.Value != nameGet || !isText {
		return nil
	}
	if of, ok := n.Arguments[0].(*ast.CallNode); ok {
		if root, ok := of.Callee.(*ast.IdentifierNode); ok && root.Value == nameFacts {
			return []string{name.Value}
		}
	}
	above := factPath(n.Arguments[0])
	if above == nil {
		return nil
	}

	return append(slices.Clone(above), name.Value)
}
