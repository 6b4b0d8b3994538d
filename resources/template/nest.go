package template

import (
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
)

// ErrTooNested is a template that the libraries would need too much stack for:
// they read what stands within one another by calling themselves.
var ErrTooNested = errors.New("too much stands within one another")

// maxNested is how deep blocks may stand in one another, and parentheses in an action.
const maxNested = 1000

// checkNested finds where a template nests too deep.
func checkNested(t Template, left, right string) error {
	n := nesting{text: t.Text, right: right}
	comment := -1
	for {
		open := strings.Index(n.text[n.at:], left)
		if open < 0 {
			return nil
		}
		start := n.at + open
		if left[0] != '{' && comment < n.at {
			comment = len(n.text)
			if i := strings.Index(n.text[n.at:], "{*"); i >= 0 {
				comment = n.at + i
			}
		}
		if left[0] != '{' && comment < start {
			n.skip(comment, "*}")
			continue
		}
		n.at = start + len(left)
		if rest := strings.TrimLeft(n.text[n.at:], "- \t\r\n"); strings.HasPrefix(rest, "/*") {
			n.skip(n.at, "*/")
			continue
		}
		if n.action() {
			line := 1 + strings.Count(t.Text[:start], "\n")
			return &Error{Pos: model.Position{File: t.Name, Line: line}, Syntax: true, Message: ErrTooNested.Error(), Err: ErrTooNested}
		}
	}
}

// nesting is a scan of a template.
type nesting struct {
	text, right string
	at          int
	// blocks are the open ones, each with how many levels it takes: another one
	// for every else if.
	blocks []int
	depth  int
}

// skip goes behind the end of a comment.
func (n *nesting) skip(from int, end string) {
	n.at = len(n.text)
	if i := strings.Index(n.text[from:], end); i >= 0 {
		n.at = from + i + len(end)
	}
}

// action reads one up to its end, and says that it nests too deep.
func (n *nesting) action() bool {
	start, within, unary := n.at, 0, 0
	for n.at < len(n.text) && !strings.HasPrefix(n.text[n.at:], n.right) {
		switch c := n.text[n.at]; c {
		case '"', '\'', '`':
			n.quoted(c)
			continue
		case '(', '[':
			within++
		case ')', ']':
			within--
		case '!', '?':
			unary++
		case 'n':
			if strings.HasPrefix(n.text[n.at:], "not ") {
				unary++
			}
		}
		if n.at++; within > maxNested || unary > maxNested {
			return true
		}
	}
	n.block(strings.Fields(strings.Trim(n.text[start:n.at], "- \t\r\n")))

	return n.depth > maxNested
}

// quoted goes behind the end of a text.
func (n *nesting) quoted(quote byte) {
	for n.at++; n.at < len(n.text); n.at++ {
		switch n.text[n.at] {
		case quote:
			n.at++
			return
		case '\\':
			if quote != '`' {
				n.at++
			}
		}
	}
	n.at = min(n.at, len(n.text))
}

// block counts what an action opens or closes.
func (n *nesting) block(words []string) {
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	switch words[0] {
	case "if", "range", "with", "block", "define", "try":
		n.blocks, n.depth = append(n.blocks, 1), n.depth+1
	case "yield":
		if len(words) > 2 && last == "content" {
			n.blocks, n.depth = append(n.blocks, 1), n.depth+1
		}
	case "else":
		if len(words) > 1 && len(n.blocks) > 0 {
			n.blocks[len(n.blocks)-1]++
			n.depth++
		}
	case "end":
		if open := len(n.blocks) - 1; open >= 0 {
			n.depth -= n.blocks[open]
			n.blocks = n.blocks[:open]
		}
	}
}
