package targets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/document"
)

// Names of the kinds of expressions in messages.
const (
	whatTarget = "target expression"
	whatResult = "query"
)

// vocabulary is the language over one kind of thing.
type vocabulary struct {
	// what is the name of the kind of expression.
	what string
	// env has the names that an expression may use, with their types.
	env              any
	names, functions []string
	// words has the names of spaces in messages, and their fixed words.
	words map[Space]words
	// mentions returns the names of the fleet in an expression.
	mentions func(text string) Mentions
	// scheme is the name with the version scheme of the name version; empty if it has none.
	scheme string
	// wordsOf returns the name that a node of the tree is and its possible words, nil for any.
	wordsOf func(ast.Node) (name string, known []string)
}

// words are the fixed words of a name.
type words struct {
	name string
	all  []string
}

// unknownWords returns warnings about the words in an expression that a name never is.
func (v vocabulary) unknownWords(in Mentions) (out []string) {
	const most = 10
	for _, n := range in.Names {
		if w, is := v.words[n.Space]; is && len(out) < most && !slices.ContainsFunc(w.all, n.Is) {
			out = append(out, fmt.Sprintf("%s is never %s; %s", w.name, quote(n.Text), hintForWord(n.Text, w.all)))
		}
	}

	return out
}

// hintForWord returns the nearest word, or all words.
func hintForWord(word string, known []string) string {
	if hint := document.DidYouMean(word, known); hint != "" {
		return hint
	}

	return "it is one of " + strings.Join(known, ", ")
}

// ofNodes returns the vocabulary over nodes.
func ofNodes(w Words) vocabulary {
	return vocabulary{
		what: whatTarget, env: env{}, names: nodeNames(), functions: []string{"group", "manifest", namePackage, "age"}, wordsOf: w.ofNode,
		mentions: InNodes,
		words:    map[Space]words{SpaceState: {"state", w.State}, SpaceStatus: {"the status of a manifest", w.Status}, SpaceOutcome: {"the outcome of a manifest", w.Outcome}},
	}
}

// ofNode returns the name that a node of the tree is and its possible words.
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
