package expression

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// NameStep is a function that every turn of a loop in an expression goes
// through, because the language itself neither ends with a context nor counts
// what loops do.
const NameStep = "__step"

// guardLoops puts the step into the bodies of loops.
type guardLoops struct{}

// Visit is called for every node, inner ones first.
func (guardLoops) Visit(node *ast.Node) {
	if body, ok := (*node).(*ast.PredicateNode); ok {
		body.Node = &ast.CallNode{Callee: &ast.IdentifierNode{Value: NameStep}, Arguments: []ast.Node{body.Node}}
	}
}

// Repeat is the builtin with a limit on its result, not only on its count.
func Repeat(s string, count int, limit int64) (string, error) {
	if count < 0 || int64(count) > limit || int64(len(s))*int64(count) > limit {
		return "", fmt.Errorf("repeat would give more than the %d bytes that are allowed", limit)
	}

	return strings.Repeat(s, count), nil
}
