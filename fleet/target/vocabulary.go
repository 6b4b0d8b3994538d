package target

import (
	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/fleet/target/mentions"
)

// What expressions are called in messages.
const (
	whatTarget = "target expression"
	whatResult = "query"
)

// vocabulary is the language over one kind of thing.
type vocabulary struct {
	// what an expression is called.
	what string
	// env has the names that an expression may use, with their types.
	env              any
	names, functions []string
	// mentions returns the names in an expression that a fleet may have or not.
	mentions func(text string) mentions.Set
	// scheme is the name with the version scheme of the name version; empty if it has none.
	scheme string
	// wordsOf returns the name that a node of the tree is, and the words that it can have, nil
	// for any.
	wordsOf func(ast.Node) (name string, known []string)
}

// ofNodes is that over nodes.
func ofNodes(words Words) vocabulary {
	return vocabulary{
		what: whatTarget, env: env{}, names: nodeNames(), functions: []string{"group", "manifest", namePackage, "age"}, wordsOf: words.ofNode,
		mentions: mentions.InNodes,
	}
}

// ofNode returns the name that a node of the tree is, and the words that it can have.
func (w Words) ofNode(n ast.Node) (name string, known []string) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		if n.Value == "state" {
			return n.Value, w.State
		}
	case *ast.MemberNode:
		of, isCall := n.Node.(*ast.CallNode)
		property, isText := n.Property.(*ast.StringNode)
		if !isCall || !isText {
			return "", nil
		}
		if callee, ok := of.Callee.(*ast.IdentifierNode); !ok || callee.Value != "manifest" {
			return "", nil
		}
		switch property.Value {
		case "status":
			return "the status of a manifest", w.Status
		case "outcome":
			return "the outcome of a manifest", w.Outcome
		}
	}

	return "", nil
}
