package template

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"text/scanner"

	"github.com/musterfleet/muster/model"
)

// Use describes how templates use secrets.
type Use uint8

// The uses, from harmless to serious.
const (
	// Unused: the template names no secret, and no mapping or list with a secret.
	Unused Use = iota
	// Printed: an action only prints a secret.
	Printed
	// Mixed: the result depends on a secret, or cannot be judged.
	Mixed
)

// Judge finds out from the source of templates whether they use a secret. A template uses a secret if it
// names the path of a secret, if it prints, passes on or ranges over a mapping with a secret, or if it does
// something that cannot be judged, such as printing everything. Only a strict judge considers the results of
// lookup and outputs. A Judge is for one goroutine.
type Judge struct {
	// Data is the value of Data and data in templates, with its secrets marked.
	Data any
	// Strict also judges calls of lookup and secret.
	Strict bool
	// Found is the most serious use so far.
	Found Use
	// Flows reports whether a secret may be in something other than the output: in a variable, in
	// the dot, or in the path of a written file.
	Flows bool
}

// Text judges a template of Jet or of Go, with its delimiters. It reports Mixed for a template that
// nests too deep, which cannot be rendered.
func (j *Judge) Text(text, left, right string, jet bool) {
	if scan(Template{Text: text}, left, right, jet, j) != nil {
		j.Found, j.Flows = Mixed, true
	}
}

// word is a token of an action. glued means that no space is before it.
type word struct {
	kind  rune
	text  string
	glued bool
}

func words(action string) []word {
	var s scanner.Scanner
	s.Init(strings.NewReader(action))
	s.Mode = scanner.GoTokens
	s.Error = func(*scanner.Scanner, string) {}
	s.IsIdentRune = func(r rune, i int) bool {
		return r == '$' && i == 0 || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f || i > 0 && r >= '0' && r <= '9'
	}
	var out []word
	end := 0
	for kind := s.Scan(); kind != scanner.EOF; kind = s.Scan() {
		out = append(out, word{kind, s.TokenText(), s.Offset == end})
		end = s.Offset + len(s.TokenText())
	}

	return out
}

// action judges one action. root reports whether the dot may be the whole data of the template.
func (j *Judge) action(body string, root bool) {
	if j == nil || !j.Strict && !Holds(j.Data) {
		return
	}
	all := words(body)
	for i, w := range all {
		end, used := j.word(all, i, root)
		j.Flows = j.Flows || used && flows(all)
		switch {
		case !used:
		case end == len(all) && (i == 0 || i == 1 && all[0].kind == '.') && w.kind == scanner.Ident && w.text != "dump" && w.text != "$":
			j.Found = max(j.Found, Printed)
		default:
			j.Found = Mixed
		}
	}
}

// flows reports whether an action uses a value for something other than printing or a decision.
func flows(all []word) bool {
	return slices.Contains([]string{"range", "with", "template", "block", "include", "yield", "render"}, all[0].text) ||
		slices.ContainsFunc(all, func(w word) bool { return w.kind == '=' }) || writes(all)
}

// writes reports whether an action writes a file to a path that is not a constant.
func writes(all []word) bool {
	i := slices.IndexFunc(all, func(w word) bool { return w.text == "write" })
	ofGo := i == 0 && len(all) > 1 && isConstant(all[1])
	ofJet := i == 0 && len(all) > 3 && all[1].kind == '(' && isConstant(all[2]) && all[3].kind == ','

	return i >= 0 && !ofGo && !ofJet
}

// word judges the expression that begins with a word. It returns whether the expression uses a secret, and
// where it ends.
func (j *Judge) word(all []word, i int, root bool) (end int, used bool) {
	switch w := all[i]; w.text {
	case "Data", "data":
		return j.path(all, i)
	case ".":
		return i + 1, root && !isGlued(all, i+1, scanner.Ident) && !isOperand(all, i) && !isPassed(all, i) && Holds(j.Data)
	case "$":
		return i + 1, !isGlued(all, i+1, '.') && !isPassed(all, i) && Holds(j.Data)
	case "dump":
		return i + 1, Holds(j.Data)
	case "secret", "lookup":
		if j.Strict && (i == 0 || all[i-1].kind != '.') {
			return j.call(all, i)
		}
	}

	return i + 1, false
}

// isGlued reports whether word i is of a kind and has no space before it.
func isGlued(all []word, i int, kind rune) bool {
	return i < len(all) && all[i].glued && all[i].kind == kind
}

// isOperand reports whether a dot follows an operand.
func isOperand(all []word, i int) bool {
	return i > 0 && all[i].glued && (all[i-1].kind == scanner.Ident || all[i-1].kind == ')' || all[i-1].kind == ']')
}

// isPassed reports whether the last word of an action is the argument of another template, whose
// actions are judged.
func isPassed(all []word, i int) bool {
	if all[0].text == "render" && len(all) == 6 && i == 4 {
		return all[2].kind == scanner.String // render("partial", .) of Jet
	}

	return i > 1 && i == len(all)-1 && slices.Contains([]string{"template", "block", "include", "yield", "render"}, all[0].text) && slices.Contains([]rune{scanner.String, scanner.RawString, ')'}, all[i-1].kind)
}

// path follows the constant keys after Data.
func (j *Judge) path(all []word, i int) (end int, used bool) {
	from := i
	for from > 0 && all[from].glued && (all[from-1].kind == '.' || all[from-1].text == "$") {
		from--
	}
	at := j.Data
	for i++; i < len(all); {
		switch {
		case isGlued(all, i, '.') && isGlued(all, i+1, scanner.Ident):
			at, i = Key(at, all[i+1].text), i+2
			continue
		case isGlued(all, i, '[') && i+2 < len(all) && isConstant(all[i+1]) && all[i+2].kind == ']':
			at, i = Key(at, unquoted(all[i+1])), i+3
			continue
		case from > 0 && (all[from-1].text == "get" || all[from-1].text == "index") && isConstant(all[i]):
			at, i = Key(at, unquoted(all[i])), i+1
			continue
		}
		break
	}

	return i, Holds(at)
}

// call judges a call of secret or lookup by its constant arguments.
func (j *Judge) call(all []word, i int) (end int, used bool) {
	constant := i+3 < len(all) && all[i+1].kind == '(' && isConstant(all[i+2]) && (all[i+3].kind == ')' || all[i+3].kind == ',')
	if closed := slices.IndexFunc(all[i:], func(w word) bool { return w.kind == ')' }); closed > 0 {
		end = i + closed + 1
	}
	if all[i].text == "secret" {
		return end, true
	}
	if !constant {
		return 0, Holds(j.Data)
	}
	path, inData := strings.CutPrefix(unquoted(all[i+2])+".", "data.")

	return end, inData && Holds(Below(j.Data, strings.TrimSuffix(path, ".")))
}

func isConstant(w word) bool {
	return w.kind == scanner.String || w.kind == scanner.RawString || w.kind == scanner.Int
}

func unquoted(w word) string {
	if text, err := strconv.Unquote(w.text); err == nil {
		return text
	}

	return w.text
}

// Below returns the value at a path of keys that are joined by dots. If a key does not exist, as in a
// query, it returns the value at the path before that key.
func Below(at any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		if path == "" || strings.ContainsAny(key, `*?#@|\!{}[]()`) {
			return at
		}
		at = Key(at, key)
	}

	return at
}

// Key returns the value at a key of a mapping or list. A part of a secret is a secret.
func Key(at any, key string) any {
	switch v := at.(type) {
	case map[string]any:
		return v[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && strconv.Itoa(i) == key && i >= 0 && i < len(v) {
			return v[i]
		}
		return v
	case model.Secret:
		return v
	default:
		return nil
	}
}

// Holds reports whether a value is or contains a secret.
func Holds(v any) bool {
	switch v := v.(type) {
	case model.Secret:
		return true
	case map[string]any:
		for _, each := range v {
			if Holds(each) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, Holds)
	}

	return false
}

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

type nesting struct {
	text, right string
	at          int
	blocks      []block
	depth       int
}

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
