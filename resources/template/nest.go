package template

import (
	"errors"
	"strings"

	"github.com/musterfleet/muster/model"
)

// ErrTooNested means that the template nests so deep that the recursive parsers of the libraries
// would need too much stack.
var ErrTooNested = errors.New("too many levels within one another")

// maxNested is the maximum depth of blocks, and of parentheses in an action.
const maxNested = 1000

// scan passes the actions of a template to judge, and returns an error if the template nests too deep.
func scan(t Template, left, right string, jet bool, judge *Judge) error {
	n := nesting{text: t.Text, right: right}
	comment := -1
	for {
		open := strings.Index(n.text[n.at:], left)
		if open < 0 {
			return nil
		}
		start := n.at + open
		if jet && comment < n.at {
			comment = len(n.text)
			if i := strings.Index(n.text[n.at:], "{*"); i >= 0 {
				comment = n.at + i
			}
		}
		if jet && comment < start {
			n.skip(comment, "*}")
			continue
		}
		n.at = start + len(left)
		if rest := strings.TrimLeft(n.text[n.at:], "- \t\r\n"); strings.HasPrefix(rest, "/*") {
			n.skip(n.at, "*/")
			continue
		}
		begin := n.at
		if n.action() {
			return tooNested(t, start)
		}
		body := strings.Trim(n.text[begin:n.at], "- \t\r\n")
		judge.action(body, n.root())
		n.block(strings.Fields(body), !jet || !strings.Contains(body, "="))
		if n.depth > maxNested {
			return tooNested(t, start)
		}
	}
}

func tooNested(t Template, at int) error {
	line := 1 + strings.Count(t.Text[:at], "\n")

	return &Error{Pos: model.Position{File: t.Name, Line: line}, Syntax: true, Message: ErrTooNested.Error(), Err: ErrTooNested}
}

// nesting is the state of a scan.
type nesting struct {
	text, right string
	at          int
	blocks      []block
	depth       int
}

// block is an open block of a template.
type block struct {
	// levels is the number of levels; each else if adds one.
	levels int
	// root reports whether the dot may be the whole data in the block, around reports it for the
	// enclosing block.
	root, around bool
}

// root reports whether the dot may be the whole data of the template.
func (n *nesting) root() bool { return len(n.blocks) == 0 || n.blocks[len(n.blocks)-1].root }

func (n *nesting) open(root bool) {
	n.blocks, n.depth = append(n.blocks, block{1, root, n.root()}), n.depth+1
}

// skip moves behind the end of a comment.
func (n *nesting) skip(from int, end string) {
	n.at = len(n.text)
	if i := strings.Index(n.text[from:], end); i >= 0 {
		n.at = from + i + len(end)
	}
}

// action moves to the end of an action, and reports whether the action nests too deep.
func (n *nesting) action() bool {
	within, unary := 0, 0
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

	return false
}

// quoted moves behind the end of a quoted text.
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

// block records the block that an action opens or closes. rebinds reports whether a loop sets the dot.
func (n *nesting) block(words []string, rebinds bool) {
	if len(words) == 0 {
		return
	}
	last := len(n.blocks) - 1
	switch words[0] {
	case "if", "try":
		n.open(n.root())
	case "with":
		n.open(false)
	case "range":
		n.open(n.root() && !rebinds)
	case "block", "define":
		n.open(true)
	case "yield":
		if len(words) > 2 && words[len(words)-1] == "content" {
			n.open(true)
		}
	case "else", "catch":
		if last < 0 {
			return
		}
		n.blocks[last].root = n.blocks[last].around
		if len(words) > 1 && words[0] == "else" {
			n.blocks[last].levels++
			n.depth++
		}
	case "end":
		if last >= 0 {
			n.depth -= n.blocks[last].levels
			n.blocks = n.blocks[:last]
		}
	}
}
