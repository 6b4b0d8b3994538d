package manifest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// nameStep is a function that every turn of a loop in an expression goes
// through, because the language itself neither ends with a context nor counts
// what loops do.
const nameStep = "__step"

// maxWork is how many bytes the loops of one evaluation may come to; a turn
// counts for stepCost and for the text or list it gives.
const (
	maxWork  = 256 << 20
	stepCost = 64
)

var errTooMuchWork = hintedError{errors.New("it does too much work"), "use join() to make a text of a list, or make the value elsewhere"}

// guardLoops puts the step into the bodies of loops.
type guardLoops struct{}

// Visit is called for every node, inner ones first.
func (guardLoops) Visit(node *ast.Node) {
	if body, ok := (*node).(*ast.PredicateNode); ok {
		body.Node = &ast.CallNode{Callee: &ast.IdentifierNode{Value: nameStep}, Arguments: []ast.Node{body.Node}}
	}
}

// step counts a turn of a loop and passes on what it gives.
func (sc *scope) step(ctx context.Context, v any) (any, error) {
	sc.work += stepCost
	size := int64(0)
	if r := reflect.ValueOf(v); r.IsValid() && (r.Kind() == reflect.String || r.Kind() == reflect.Slice) {
		size = int64(r.Len())
	}
	sc.work += size
	if sc.work > maxWork || size > sc.opts.MaxBytes {
		return nil, errTooMuchWork
	}

	return v, context.Cause(ctx)
}

// repeat is the builtin with a limit on what comes of it, not only on its count.
func repeat(s string, count int, limit int64) (string, error) {
	if count < 0 || int64(count) > limit || int64(len(s))*int64(count) > limit {
		return "", fmt.Errorf("repeat would give more than the %d bytes that are allowed", limit)
	}

	return strings.Repeat(s, count), nil
}
