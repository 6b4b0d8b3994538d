package template

import (
	"fmt"
	"path"
	"reflect"
	"slices"

	"github.com/CloudyKit/jet/v6"
)

// guard changes a parsed template: ranges sort mappings, loops, blocks and assignments count steps, and
// errors of functions have a line. The library has no options for this.
func (r *rendering) guard(name string, root *jet.ListNode) {
	Visit(root, func(node any) {
		switch n := node.(type) {
		case *jet.ListNode:
			n.Nodes = r.beforeAssignments(n.Nodes)
		case *jet.RangeNode:
			r.begin(n.List, n.NodeBase)
			over := &n.Expression
			if n.Set != nil {
				over = &n.Set.Right[0]
				for _, left := range n.Set.Left {
					r.checkAtBegin(n.List, left)
				}
			}
			*over = jetCall(n.NodeBase, nameInOrder, *over)
		case *jet.ActionNode:
			r.checkAssigned(n.Set)
			r.checkPrinted(n)
		case *jet.IfNode:
			r.checkAssigned(n.Set)
		case *jet.BlockNode:
			r.begin(n.List, n.NodeBase)
		case *jet.CallExprNode:
			if of, named := n.BaseExpr.(*jet.IdentifierNode); named && r.functions[of.Ident] != nil {
				of.Ident = r.located(of.Ident, of.NodeBase, r.functions[of.Ident])
			}
		case *jet.IncludeNode:
			// Callers that collect the files of a manifest need each file, even if it is not reached.
			if of, constant := n.Name.(*jet.StringNode); constant && r.load != nil {
				_, _ = r.text(sibling(name, of.Text))
			}
		}
	})
	r.begin(root, jet.NodeBase{TemplatePath: root.TemplatePath, Line: 1})
}

// Visit calls a function for every node in a tree of Jet or of Go, inner nodes first.
func Visit(root any, of func(node any)) { visit(reflect.ValueOf(root), of) }

func visit(v reflect.Value, of func(node any)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			visit(v.Elem(), of)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visit(v.Index(i), of)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			// A node of Go has its tree in an unexported field.
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				visit(v.Field(i), of)
			}
		}
		if v.CanAddr() && v.Addr().CanInterface() {
			of(v.Addr().Interface())
		}
	}
}

func (r *rendering) begin(list *jet.ListNode, at jet.NodeBase) {
	list.Nodes = slices.Insert(list.Nodes, 0, r.step(nameStep, at))
}

func (r *rendering) beforeAssignments(nodes []jet.Node) []jet.Node {
	out := make([]jet.Node, 0, len(nodes))
	for _, node := range nodes {
		switch n := node.(type) {
		case *jet.ActionNode:
			if n.Set != nil {
				out = append(out, r.step(nameAssign, n.NodeBase))
			}
		case *jet.IfNode:
			if n.Set != nil {
				out = append(out, r.step(nameAssign, n.NodeBase))
			}
		}
		out = append(out, node)
	}

	return out
}

// nameAssign is the function that counts an assignment; nameStep counts other steps.
const nameAssign = "__assign"

func (r *rendering) step(name string, at jet.NodeBase) jet.Node {
	located := r.located(name, at, func(jet.Arguments) reflect.Value {
		if err := r.out.step(name == nameAssign); err != nil {
			panic(err)
		}
		return reflect.Value{}
	})

	return jetAction(jetCall(at, located))
}

// checkAssigned wraps each value that an assignment gives to a key in a call of assigned.
func (r *rendering) checkAssigned(set *jet.SetNode) {
	if set == nil {
		return
	}
	for i, left := range set.Left {
		if m, at := mappingOf(left); m != nil && i < len(set.Right) {
			set.Right[i] = jetCall(at, r.located(nameAssigned, at, assigned), m, set.Right[i])
		}
	}
}

// checkAtBegin does the same for the values that a loop gives to a key, at the beginning of its list. No
// code can use the values earlier.
func (r *rendering) checkAtBegin(list *jet.ListNode, left jet.Expression) {
	if m, at := mappingOf(left); m != nil {
		call := jetCall(at, r.located(nameAssignedInLoop, at, func(args jet.Arguments) reflect.Value {
			assigned(args)
			return reflect.Value{} // an action must print nothing
		}), m, left)
		list.Nodes = slices.Insert[[]jet.Node, jet.Node](list.Nodes, 0, jetAction(call))
	}
}

// mappingOf returns the mapping of an assignment to a key, nil for a variable.
func mappingOf(left jet.Expression) (jet.Expression, jet.NodeBase) {
	switch n := left.(type) {
	case *jet.ChainNode:
		of := *n
		if of.Field = n.Field[:len(n.Field)-1]; len(of.Field) > 0 {
			return &of, n.NodeBase
		}
		m, _ := n.Node.(jet.Expression)
		return m, n.NodeBase
	case *jet.FieldNode:
		of := *n
		of.Ident = n.Ident[:len(n.Ident)-1]
		return &of, n.NodeBase
	default:
		return nil, jet.NodeBase{}
	}
}

// The names of the functions that check the values of keys.
const (
	nameAssigned       = "__assigned"
	nameAssignedInLoop = "__assigned_in_loop"
)

// assigned returns its second argument. It panics if that value contains the first argument, a mapping.
func assigned(args jet.Arguments) reflect.Value {
	m, v := args.Get(0), args.Get(1)
	if m.IsValid() && v.IsValid() {
		if err := checkHolder(m, v); err != nil {
			panic(err)
		}
	}

	return v
}

func jetAction(call *jet.CallExprNode) *jet.ActionNode {
	at := call.NodeBase
	command := &jet.CommandNode{NodeBase: base(at, jet.NodeCommand), CallExprNode: *call}
	pipe := &jet.PipeNode{NodeBase: base(at, jet.NodePipe), Cmds: []*jet.CommandNode{command}}

	return &jet.ActionNode{NodeBase: base(at, jet.NodeAction), Pipe: pipe}
}

func jetCall(at jet.NodeBase, function string, args ...jet.Expression) *jet.CallExprNode {
	name := &jet.IdentifierNode{NodeBase: base(at, jet.NodeIdentifier), Ident: function}

	return &jet.CallExprNode{NodeBase: base(at, jet.NodeCallExpr), BaseExpr: name, CallArgs: jet.CallArgs{Exprs: append([]jet.Expression{}, args...)}}
}

func base(at jet.NodeBase, kind jet.NodeType) jet.NodeBase {
	at.NodeType = kind

	return at
}

// located adds a function for one line of a template, and returns its name. Its errors have the line, which
// the library does not report.
func (r *rendering) located(name string, at jet.NodeBase, fn jet.Func) string {
	name = fmt.Sprintf("%s %s:%d", name, at.TemplatePath, at.Line)
	r.set.AddGlobalFunc(name, func(args jet.Arguments) reflect.Value {
		defer func() {
			switch p := recover().(type) {
			case nil:
			case error:
				panic(fmt.Errorf("Jet Runtime Error (%q:%d): %w", at.TemplatePath, at.Line, p))
			default:
				panic(p)
			}
		}()
		return fn(args)
	})

	return name
}

func sibling(of, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}

	return path.Join(path.Dir(of), name)
}
