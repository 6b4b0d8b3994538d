package expression

import (
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// putIn replaces tokens in a parsed expression by printed values. A token that is a name becomes a
// text.
type putIn func(string) string

// Visit is called for every node, inner ones first.
func (text putIn) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.StringNode:
		n.Value = text(n.Value)
	case *ast.IdentifierNode:
		if value := text(n.Value); value != n.Value {
			ast.Patch(node, &ast.StringNode{Value: value})
		}
	}
}

// Source returns a text with its expressions, with tokens replaced by printed values.
func Source(s string, text func(string) string) string {
	parts, _, _ := Scan(s)
	var b strings.Builder
	for i, p := range parts {
		switch {
		case p.IsExpr:
			b.WriteString("${ " + source(p.Expr, text) + " }")
			continue
		case i+1 < len(parts) && strings.HasSuffix(text(p.Literal), "$"):
			// Before an expression, a trailing $ would escape it.
			b.WriteString(LiteralText(strings.TrimSuffix(text(p.Literal), "$")) + "{{ '$' }}")
		default:
			b.WriteString(LiteralText(text(p.Literal)))
		}
	}

	return b.String()
}

func source(expr string, text func(string) string) string {
	tree, err := parser.Parse(expr)
	if err != nil || text(expr) == expr {
		return expr
	}
	ast.Walk(&tree.Node, putIn(text))

	return tree.Node.String()
}
