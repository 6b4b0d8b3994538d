package targets

import (
	"reflect"
	"time"

	"github.com/expr-lang/expr/ast"
)

// Remedies for durations and times.
const (
	hintDuration = `write a duration as text, such as "90s", "15m" or "2h30m"`
	hintTime     = `write a time as text, such as "2006-01-02T15:04:05Z", or age(heard) > "1h" for how long ago`
)

// readMoments parses the texts that durations and times are compared with when the expression is compiled. An invalid
// text is an error of the expression.
func (p *patcher) readMoments(n *ast.BinaryNode) {
	switch n.Operator {
	case "==", "!=", "<", "<=", ">", ">=":
	default:
		return
	}
	for _, sides := range []struct{ of, text *ast.Node }{{&n.Left, &n.Right}, {&n.Right, &n.Left}} {
		text, ok := (*sides.text).(*ast.StringNode)
		switch {
		case !ok:
		case isDuration(*sides.of):
			d, err := time.ParseDuration(text.Value)
			if err != nil {
				p.refuse(text, quote(text.Value)+" is no duration", hintDuration)
				return
			}
			*sides.text = constant(text, d)
		case (*sides.of).Type() == reflect.TypeFor[time.Time]():
			at, ok := parseTime(text.Value)
			if !ok {
				p.refuse(text, quote(text.Value)+" is no time", hintTime)
				return
			}
			*sides.text = constant(text, at)
		}
	}
}

// isDuration reports whether a node of the tree is a duration.
func isDuration(n ast.Node) bool {
	if call, ok := n.(*ast.CallNode); ok {
		callee, ok := call.Callee.(*ast.IdentifierNode)
		return ok && callee.Value == "age"
	}

	return n.Type() == reflect.TypeFor[time.Duration]()
}

// constant returns a constant that replaces a text.
func constant(text *ast.StringNode, v any) ast.Node {
	n := &ast.ConstantNode{Value: v}
	n.SetType(reflect.TypeOf(v))
	n.SetLocation(text.Location())

	return n
}

// parseTime parses a time, in the local zone without a zone.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}

	return time.Time{}, false
}
