package template

import (
	"reflect"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/CloudyKit/jet/v6"
)

// namePrinted is the name of the function that checks printed values.
const namePrinted = "__printed"

// nullError is the error for a null value, which the libraries would print as <no value> or <nil>.
type nullError struct{ source string }

// Error returns the action with the problem.
func (e *nullError) Error() string { return "`" + e.source + "` is null" }

func (e *nullError) goHint() string {
	return "give it a value, or write {{ " + e.source + " | default \"…\" }}"
}

func (e *nullError) jetHint() string {
	return "give it a value, or write [[ isset(" + e.source + ") ? " + e.source + " : \"…\" ]]"
}

// maxSource is the maximum length of an action in an error, in bytes.
const maxSource = 80

func clipped(source string) string {
	if len(source) > maxSource {
		return strings.ToValidUTF8(source[:maxSource], "") + "…"
	}

	return source
}

// checkPrinted appends a call of printed to each action that prints.
func checkPrinted(root *parse.ListNode) {
	Visit(root, func(node any) {
		n, is := node.(*parse.ActionNode)
		if !is || len(n.Pipe.Decl) > 0 {
			return
		}
		source := clipped(n.Pipe.String())
		text := &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Text: source}
		call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier(namePrinted).SetPos(n.Pos), text}}
		n.Pipe.Cmds = append(n.Pipe.Cmds, call)
	})
}

// printed returns the value of an action, or a nullError.
func printed(source string, v any) (any, error) {
	if v == nil {
		return nil, &nullError{source}
	}

	return v, nil
}

// checkPrinted wraps the value of an action that prints, so that null is an error.
func (r *rendering) checkPrinted(n *jet.ActionNode) {
	if n.Pipe == nil || n.Pipe.Cmds[0].Exprs != nil {
		return
	}
	for _, next := range n.Pipe.Cmds[1:] {
		if writer, is := next.BaseExpr.(*jet.IdentifierNode); !is || !slices.Contains([]string{"raw", "unsafe", "safeHtml", "safeJs"}, writer.Ident) {
			return
		}
	}
	value := n.Pipe.Cmds[0].BaseExpr
	source := clipped(value.String())
	name := r.located(namePrinted, n.NodeBase, func(args jet.Arguments) reflect.Value {
		v := args.Get(0)
		if v.IsValid() && v.Kind() == reflect.Interface && v.IsNil() {
			panic(&nullError{source})
		}
		return v
	})
	n.Pipe.Cmds[0].CallExprNode = *jetCall(n.NodeBase, name, value)
}
