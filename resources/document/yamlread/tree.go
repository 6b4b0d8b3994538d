package yamlread

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// Node is a value of a tree, or a key before its value. The content of a list or mapping follows
// it.
type Node struct {
	// At is the offset of the first byte.
	At uint32
	// Size is the size of the text of a scalar, or its index in Others. For a list or mapping it is
	// the number of nodes, including itself.
	Size uint32
	Kind Kind
	Form Form
}

// Form is the location of the text of a node.
type Form uint8

const (
	// The text is in the document at the offset of the node, or after a quote.
	inPlain Form = iota
	inQuotes
	// The text is in Others, because the document contains it in another form.
	InOthers
)

// Span returns the number of nodes of a value.
func (n Node) Span() int {
	if n.Kind == List || n.Kind == Map {
		return int(n.Size)
	}

	return 1
}

// Tree is a document in 12 bytes per value and key, which point into its text.
type Tree struct {
	Texts
	blocks [][]Node
	count  int
}

// blockNodes is the number of nodes that are allocated together.
const blockNodes = 4096

// NewTree returns an empty tree of a document.
func NewTree(s *Source) *Tree { return &Tree{Texts: Texts{Source: s}} }

// Len returns the number of nodes.
func (t *Tree) Len() int { return t.count }

// Node returns the node with an index.
func (t *Tree) Node(i int) *Node { return &t.blocks[i/blockNodes][i%blockNodes] }

// Add appends a node and returns its index.
func (t *Tree) Add(n Node) int {
	last := len(t.blocks) - 1
	if last < 0 || len(t.blocks[last]) == blockNodes {
		last++
		// Most documents are small, so the first block is small.
		t.blocks = append(t.blocks, make([]Node, 0, min(blockNodes, 16+last*blockNodes)))
	}
	t.blocks[last] = append(t.blocks[last], n)
	t.count++

	return t.count - 1
}

// Truncate removes node i and all nodes after it.
func (t *Tree) Truncate(i int) {
	last := i / blockNodes
	t.blocks = t.blocks[:last+1]
	t.blocks[last] = t.blocks[last][:i%blockNodes]
	t.count = i
}

// Close sets the size of a list or mapping that ends here.
func (t *Tree) Close(i int) { t.Node(i).Size = uint32(t.count - i) }

// Texts are the texts of nodes: parts of the document, and Others.
type Texts struct {
	*Source
	Others []string
}

// TextOf returns the text of a scalar.
func (t *Texts) TextOf(n Node) string {
	switch n.Form {
	case inPlain:
		return t.Text[n.At:][:n.Size]
	case inQuotes:
		return t.Text[n.At+1:][:n.Size]
	default:
		return t.Others[n.Size]
	}
}

// SetText sets the text of a node. Most texts are in the document at the offset of the node.
func (t *Texts) SetText(n *Node, text string) {
	n.Size = uint32(len(text))
	switch rest := t.Text[n.At:]; {
	case strings.HasPrefix(rest, text):
		n.Form = inPlain
	case rest != "" && strings.HasPrefix(rest[1:], text):
		n.Form = inQuotes
	default:
		n.Form, n.Size = InOthers, uint32(len(t.Others))
		t.Others = append(t.Others, text)
	}
}

const (
	// MaxValues is the maximum number of values of a document.
	MaxValues = 1_000_000
	// MaxDepth is the maximum nesting depth of a document.
	MaxDepth = 100
)

// TooMany returns the problem of a document with more than MaxValues values.
func TooMany(name string) model.Problem {
	return model.ProblemAt(model.Position{File: name}, "split it, or put large files beside the manifest in a bundle, and use `source`",
		"the document seems to contain more than %d values", MaxValues)[0]
}

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. A scalar keeps its text as written, for example mode: 0644 and ensure: 1.10.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// String returns the name of the kind for users.
func (k Kind) String() string {
	return [...]string{"nothing", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

// PositionAt returns the line and column of a byte offset. Columns count characters.
func PositionAt(name string, data []byte, offset int) model.Position {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1

	return model.Position{File: name, Line: bytes.Count(before, []byte{'\n'}) + 1, Column: utf8.RuneCount(before[start:]) + 1}
}
