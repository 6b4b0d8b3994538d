package document

import (
	"iter"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document/yamlread"
)

// Node is a value of a parsed document. The zero Node is Null.
type Node struct {
	tree *yamlread.Tree
	at   int
}

func (n Node) node() yamlread.Node {
	if n.tree == nil {
		return yamlread.Node{}
	}

	return *n.tree.Node(n.at)
}

// Kind returns the kind of the value.
func (n Node) Kind() Kind { return n.node().Kind }

// IsScalar reports whether Text returns the value.
func (n Node) IsScalar() bool { return Value{Kind: n.Kind()}.IsScalar() }

// Text returns a scalar as written. It is empty for other kinds.
func (n Node) Text() string {
	if !n.IsScalar() {
		return ""
	}

	return n.tree.TextOf(n.node())
}

// Pos returns the position of the value.
func (n Node) Pos() model.Position {
	if n.tree == nil {
		return model.Position{}
	}

	return n.tree.Position(n.node().At)
}

// Items returns the items of a list.
func (n Node) Items() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.Kind() == List {
			n.children(yield)
		}
	}
}

// Values returns the items of a list as values.
func (n Node) Values() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for item := range n.Items() {
			if !yield(item.Value()) {
				return
			}
		}
	}
}

// Entries returns the keys and values of a mapping.
func (n Node) Entries() iter.Seq2[Node, Node] {
	return func(yield func(key, value Node) bool) {
		if n.Kind() != Map {
			return
		}
		var key Node
		n.children(func(child Node) bool {
			if key.tree == nil {
				key = child
				return true
			}
			more := yield(key, child)
			key = Node{}
			return more
		})
	}
}

// children calls do with the items of a list, or with the keys and values of a mapping, until do
// returns false.
func (n Node) children(do func(Node) bool) {
	end := n.at + n.node().Span()
	for i := n.at + 1; i < end; {
		child := Node{n.tree, i}
		if !do(child) {
			return
		}
		i += child.node().Span()
	}
}

// Len returns the number of items of a list, or of entries of a mapping.
func (n Node) Len() int {
	count := 0
	if kind := n.Kind(); kind == List || kind == Map {
		n.children(func(Node) bool { count++; return true })
		if kind == Map {
			count /= 2
		}
	}

	return count
}

// Get returns the value of a key of a mapping.
func (n Node) Get(key string) (Node, bool) {
	for k, v := range n.Entries() {
		if k.Text() == key {
			return v, true
		}
	}

	return Node{}, false
}

// Value converts the node and its content to a Value.
func (n Node) Value() Value {
	in := n.node()
	v := Value{Kind: in.Kind, Pos: n.Pos()}
	switch in.Kind {
	case List:
		v.Items = make([]Value, 0, n.Len())
		for item := range n.Items() {
			v.Items = append(v.Items, item.Value())
		}
	case Map:
		v.Entries = make([]Entry, 0, n.Len())
		for key, value := range n.Entries() {
			v.Entries = append(v.Entries, Entry{Key: key.Text(), Pos: key.Pos(), Value: value.Value()})
		}
	case Bool, Number, String:
		v.Text = n.tree.TextOf(in)
	}

	return v
}
