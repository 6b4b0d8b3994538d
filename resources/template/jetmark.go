package template

import (
	"path"

	"github.com/CloudyKit/jet/v6"
)

// marker puts a call before every action of a parsed template, which tells
// where the template is when something fails there, counts what loops do, and
// looks how deep it is in itself. The library offers none of this.
type marker struct {
	rendering  *rendering
	name, text string
	lists      []*jet.ListNode
	// order is a call of inOrder, once there is a range.
	order *jet.CallExprNode
}

// mark marks a list and all those within it.
func (m *marker) mark(root *jet.ListNode) {
	m.list(root)
	for i := 0; i < len(m.lists); i++ {
		m.within(m.lists[i])
	}
	first := len(m.rendering.places)
	var numbered []jet.Node
	for _, list := range m.lists {
		for _, node := range m.marked(list) {
			m.rendering.assigns[len(m.rendering.places)] = assigns(node)
			m.rendering.places = append(m.rendering.places, at(m.rendering.name(m.name), m.text, int(node.Position())))
			numbered = append(numbered, node)
		}
	}
	marks := calls(first, len(numbered))
	for _, list := range m.lists {
		count := len(m.marked(list))
		list.Nodes = merge(list.Nodes, marks[:count])
		marks = marks[count:]
	}
}

// assigns says that an action gives a variable, or a key, a value.
func assigns(node jet.Node) bool {
	action, is := node.(*jet.ActionNode)

	return is && action.Set != nil
}

// marked are the nodes of a list that are told: its actions, or its text where
// it has nothing else, for a loop needs one.
func (m *marker) marked(list *jet.ListNode) []jet.Node {
	var out []jet.Node
	for _, node := range list.Nodes {
		if node.Type() != jet.NodeText {
			out = append(out, node)
		}
	}
	if len(out) == 0 {
		out = []jet.Node{list}
	}

	return out
}

// merge puts each mark before the next node that is no text.
func merge(nodes, marks []jet.Node) []jet.Node {
	out := make([]jet.Node, 0, len(nodes)+len(marks))
	for _, node := range nodes {
		if node.Type() != jet.NodeText {
			out, marks = append(out, marks[0]), marks[1:]
		}
		out = append(out, node)
	}

	return append(out, marks...)
}

func (m *marker) list(l *jet.ListNode) {
	if l != nil {
		m.lists = append(m.lists, l)
	}
}

func (m *marker) branch(b *jet.BranchNode) {
	m.list(b.List)
	m.list(b.ElseList)
}

// within finds the lists within a list. What another template holds is read
// already here, so that whoever collects the files of a manifest knows of it.
func (m *marker) within(l *jet.ListNode) {
	for _, node := range l.Nodes {
		switch n := node.(type) {
		case *jet.IfNode:
			m.branch(&n.BranchNode)
		case *jet.RangeNode:
			m.branch(&n.BranchNode)
			if m.order == nil {
				m.order = orderCall()
			}
			orderRange(n, m.order)
		case *jet.BlockNode:
			m.list(n.List)
			m.list(n.Content)
		case *jet.YieldNode:
			m.list(n.Content)
		case *jet.TryNode:
			m.list(n.List)
			if n.Catch != nil {
				m.list(n.Catch.List)
			}
		case *jet.IncludeNode:
			if name, constant := n.Name.(*jet.StringNode); constant && m.rendering.load != nil {
				_, _ = m.rendering.text(sibling(m.name, name.Text))
			}
		}
	}
}

// sibling is the path of a template that another one names.
func sibling(of, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}

	return path.Join(path.Dir(of), name)
}

// calls makes the actions [[ __at(n) ]], all like one that is parsed.
func calls(first, count int) []jet.Node {
	set := jet.NewSet(jet.NewInMemLoader(), jet.WithDelims(JetLeft, JetRight))
	t, err := set.Parse("marks", JetLeft+" "+nameAt+"(0) "+JetRight)
	if err != nil {
		panic("the marks are not valid: " + err.Error())
	}
	like := t.Root.Nodes[0].(*jet.ActionNode)
	out := make([]jet.Node, count)
	for i := range out {
		action, pipe, call, number := *like, *like.Pipe, *like.Pipe.Cmds[0], *like.Pipe.Cmds[0].Exprs[0].(*jet.NumberNode)
		number.IsFloat, number.Float64 = true, float64(first+i)
		call.Exprs = []jet.Expression{&number}
		pipe.Cmds = []*jet.CommandNode{&call}
		action.Pipe = &pipe
		out[i] = &action
	}

	return out
}
