// Package expression compiles the expressions in texts and converts their results to values.
package expression

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Program is a compiled expression and the names that it uses.
type Program struct {
	*vm.Program
	Names map[string]bool
	// Refs are the resources whose outputs it uses.
	Refs []model.Ref
	// Fields are the outputs that it names.
	Fields []field
	// DataPaths are the constant paths that it reads below Data.
	DataPaths [][]string
	// Message and Hint are the error of compiling and its remedy.
	Message, Hint string
	// unknown is the unknown name that prevents compiling, or empty.
	unknown string
	// OfValue are the functions with the value of @validate as first argument.
	OfValue []string
	// refused reports whether the syntax is valid, but the expression is not allowed.
	refused bool
}

// The names that expressions can use.
const (
	NameFacts   = "Facts"
	NameData    = "Data"
	NameEnviron = "Environ"
	NameValue   = "value"
	// NameEach is the element of each.
	NameEach    = "each"
	NameOutputs = "outputs"
	// NameReadFile is the function that reads a file.
	NameReadFile = "readFile"
)

// These functions render templates. Templates cannot call them, because a template that renders
// itself would not end.
const (
	NameTemplate = "template"
	NameJet      = "jet"
)

// Compile compiles an expression. It stores an error in Message and Hint. text replaces tokens by
// printed values; nil if there are none.
func Compile(source string, signature types.Map, text func(string) string) *Program {
	p := &Program{Names: map[string]bool{}}
	if source == "" {
		p.Message = "the expression is empty"
		return p
	}
	options := []expr.Option{expr.Env(signature), expr.Patch(guardLoops{})}
	if text != nil {
		options = append(options, expr.Patch(putIn(text)))
	}
	for _, name := range append([]string{"repeat", "now"}, ordered...) {
		options = append(options, expr.DisableBuiltin(name))
	}
	compiled, err := expr.Compile(source, options...)
	if err != nil {
		p.Message = ExprMessage(err)
		if word, ok := strings.CutPrefix(p.Message, "unknown name "); ok {
			p.Message, p.unknown = "unknown name `"+word+"`", word
			known := slices.Sorted(maps.Keys(signature))
			// The name now resembles every short word, and the step is internal.
			p.Hint = document.DidYouMean(word, slices.DeleteFunc(known, func(name string) bool { return name == "now" || name == NameStep }))
		}
		switch _, isLoop := signature[NameEach]; {
		case p.unknown == NameEach:
			p.Hint = "it is known in an item or a group with the key `each`"
		case p.unknown == "item" && isLoop:
			p.Hint = "write `each.value`"
		}
		if root, _, _ := strings.Cut(strings.TrimPrefix(source, "."), "."); source[0] == '.' && signature[root] != nil {
			p.Hint = "did you mean `" + source[1:] + "`?"
		}
		return p
	}
	p.Program = compiled
	node := compiled.Node()
	ast.Walk(&node, p)

	return p
}

// UsesData reports whether the program may read the data.
func (p *Program) UsesData() bool {
	return p.Names[NameData] || p.Names["lookup"] || p.Names[NameTemplate] || p.Names[NameJet]
}

// HasLiteral reports whether text is a string literal of the expression.
func (p *Program) HasLiteral(text string) bool {
	node := p.Node()

	return ast.Find(node, func(n ast.Node) bool {
		literal, is := n.(*ast.StringNode)

		return is && literal.Value == text
	}) != nil
}

type field struct {
	Ref  model.Ref
	Name string
}

// Visit records what the expression uses.
func (p *Program) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		p.Names[n.Value] = true
	case *ast.BuiltinNode:
		p.Names[n.Name] = true
		if n.Name == "get" && len(n.Arguments) == 2 {
			p.readData(n.Arguments[0], n.Arguments[1])
		}
	case *ast.BinaryNode:
		if n.Operator == "in" {
			p.readData(n.Right, n.Left)
		}
	case *ast.CallNode:
		p.call(n)
	case *ast.MemberNode:
		p.readData(n.Node, n.Property)
		if ref, ok := outputsOf(n.Node); ok {
			p.field(ref, n.Property)
		}
	case *ast.VariableDeclaratorNode:
		if ref, ok := outputsOf(n.Value); ok {
			ast.Find(n.Expr, func(inner ast.Node) bool {
				member, isMember := inner.(*ast.MemberNode)
				if isMember {
					of, isName := member.Node.(*ast.IdentifierNode)
					if isName && of.Value == n.Name {
						p.field(ref, member.Property)
					}
				}
				return false
			})
		}
	}
}

func (p *Program) readData(of, key ast.Node) {
	name, isText := key.(*ast.StringNode)
	if path, is := dataPath(of); is && isText {
		p.DataPaths = append(p.DataPaths, append(path, name.Value))
	}
}

// dataPath returns the path of a chain of constant keys that begins with Data.
func dataPath(node ast.Node) (path []string, is bool) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return nil, n.Value == NameData
	case *ast.ChainNode:
		return dataPath(n.Node)
	case *ast.MemberNode:
		name, isText := n.Property.(*ast.StringNode)
		path, is = dataPath(n.Node)
		if is && isText {
			return append(path, name.Value), true
		}
	}

	return nil, false
}

func (p *Program) field(ref model.Ref, property ast.Node) {
	if name, ok := property.(*ast.StringNode); ok {
		p.Fields = append(p.Fields, field{ref, name.Value})
	}
}

func outputsOf(node ast.Node) (ref model.Ref, ok bool) {
	call, ok := node.(*ast.CallNode)
	if !ok || len(call.Arguments) != 1 {
		return ref, false
	}
	callee, isName := call.Callee.(*ast.IdentifierNode)
	name, isText := call.Arguments[0].(*ast.StringNode)
	if !isName || !isText || callee.Value != NameOutputs {
		return ref, false
	}
	ref, err := model.ParseRef(name.Value)

	return ref, err == nil
}

func (p *Program) refuse(message, hint string) {
	p.Message, p.Hint, p.refused = message, hint, true
}

// Advice returns the remedy for an invalid expression. Many invalid expressions are meant as plain
// text, so it also shows how to write a literal. opened is the text from the start of the
// expression.
func (p *Program) Advice(opened string, data map[string]any) string {
	_, isData := data[p.unknown]
	switch {
	case p.refused:
		return p.Hint
	case isData:
		return "did you mean `Data." + p.unknown + "`? or " + LiteralHint(opened)
	case p.Hint != "":
		return p.Hint + " or " + LiteralHint(opened)
	default:
		return LiteralHint(opened)
	}
}

func (p *Program) call(n *ast.CallNode) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return
	}
	if callee.Value == NameOutputs {
		p.output(n)
	}
	if callee.Value == "lookup" && len(n.Arguments) > 0 {
		if path, isText := n.Arguments[0].(*ast.StringNode); isText {
			if rest, is := strings.CutPrefix(path.Value, "data."); is {
				p.DataPaths = append(p.DataPaths, strings.Split(rest, "."))
			}
		}
	}
	if len(n.Arguments) > 0 {
		if of, ok := n.Arguments[0].(*ast.IdentifierNode); ok && of.Value == NameValue {
			p.OfValue = append(p.OfValue, callee.Value)
		}
	}
}

func (p *Program) output(call *ast.CallNode) {
	name, ok := call.Arguments[0].(*ast.StringNode)
	if !ok {
		p.refuse("`outputs` needs its reference as literal text", "for example outputs('exec#/usr/bin/uptime')")
		return
	}
	ref, err := model.ParseRef(name.Value)
	if err != nil {
		p.refuse(err.Error(), "")
		return
	}
	p.Refs = append(p.Refs, ref)
}

// ExprMessage returns the message of an error of an expression on one line, without the excerpt of
// the expression.
func ExprMessage(err error) string {
	message := err.Error()
	var at *file.Error
	if errors.As(err, &at) {
		message = at.Message
	}

	message = strings.Join(strings.Fields(message), " ")
	if message == "unexpected token EOF" {
		return "it is not complete"
	}
	if found := unexpectedToken.FindStringSubmatch(message); found != nil {
		message = "unexpected `" + found[1] + "`"
	}

	return typeWords.Replace(message)
}

var (
	unexpectedToken = regexp.MustCompile(`^unexpected token \w+\("(.*)"\)$`)
	typeWords       = strings.NewReplacer("map[string]interface {}", "mapping", "[]interface {}", "list", "interface {}", "any")
)

// Missing reports whether the whole expression is a chain with a missing link, such as
// Data.app.port.
func (p *Program) Missing(vars map[string]any) (path string, known []string, is bool) {
	c := follow(p.Node(), vars)

	return c.path, c.known, c.path != "" && !c.ok && !c.optional
}

// MissingAt explains the error of reading key from a missing or null value at path. is is false for
// any other error.
func (p *Program) MissingAt(err error, vars map[string]any) (path, key string, known []string, is bool) {
	_, member := p.misread(err)
	if member == nil {
		return "", "", nil, false
	}
	c := follow(member.Node, vars)
	switch {
	case c.path == "", c.ok && c.value != nil:
		return "", "", nil, false
	case c.ok:
		return c.path, keyOf(member), nil, true // it is null, so its name is right
	default:
		return c.path, keyOf(member), c.known, true
	}
}

// Lacks reports whether a constant chain that begins with a name, such as Facts.site.role, is
// missing or null.
func (p *Program) Lacks(name string, value any) bool {
	vars := map[string]any{name: value}

	return ast.Find(p.Node(), func(n ast.Node) bool {
		_, is := n.(*ast.MemberNode)
		c := follow(n, vars)
		return is && c.path != "" && (!c.ok || c.value == nil)
	}) != nil
}

// chain is a chain of constant names and list positions up to its first missing link.
type chain struct {
	path  string
	value any
	// known are the keys beside the last link.
	known []string
	// ok reports whether the last link exists.
	ok bool
	// optional reports whether a link may be missing.
	optional bool
}

// follow walks a chain. Its path is empty if the node is not a chain or its first name is not in
// vars.
func follow(node ast.Node, vars map[string]any) chain {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		if value, ok := vars[n.Value]; ok {
			return chain{path: n.Value, value: value, ok: true}
		}
	case *ast.ChainNode:
		return follow(n.Node, vars)
	case *ast.MemberNode:
		key, constant := constantKey(n)
		if !constant {
			return chain{}
		}
		c := follow(n.Node, vars)
		c.optional = c.optional || n.Optional
		if c.path == "" || !c.ok {
			return c
		}
		m, _ := c.value.(map[string]any)
		c.path, c.known = c.path+"."+key, KeysOf(m)
		c.value, c.ok = Find(c.value, []string{key})
		return c
	}

	return chain{}
}

// constantKey returns the key or list position that a node reads, if it is constant.
func constantKey(n *ast.MemberNode) (key string, constant bool) {
	switch property := n.Property.(type) {
	case *ast.StringNode:
		return property.Value, true
	case *ast.IntegerNode:
		return strconv.Itoa(property.Value), true
	default:
		return "", false
	}
}

// KeysOf returns the sorted keys of a mapping, so that suggestions are deterministic.
func KeysOf(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// ChainOf returns the names of an expression that is only a path below Data or each, such as Data.users; nil for
// any other expression.
func ChainOf(node ast.Node) []string {
	found := Sources{Paths: map[ast.Node][]string{}}
	ast.Walk(&node, &found)
	if chain, is := node.(*ast.ChainNode); is {
		node = chain.Node
	}

	return found.Paths[node]
}

// Sources are the inputs of an expression.
type Sources struct {
	// Paths are the chains of constant keys that begin with Data or each, by their outermost node.
	Paths map[ast.Node][]string
	// All reports whether the expression uses $env, which contains all names.
	All bool
	// Calls reports whether the expression calls a function that may return a secret.
	Calls bool
}

// Visit is called for every node, inner ones first.
func (s *Sources) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == NameData || n.Value == NameEach {
			s.Paths[n] = []string{n.Value}
		}
		s.All = s.All || n.Value == "$env"
		s.Calls = s.Calls || slices.Contains([]string{"lookup", "secret", "readFile", "file", NameOutputs, NameTemplate, NameJet}, n.Value)
	case *ast.MemberNode:
		path, known := s.Paths[n.Node]
		if key, constant := constantKey(n); known && constant {
			delete(s.Paths, n.Node)
			s.Paths[n] = append(path[:len(path):len(path)], key)
		}
	}
}

// putIn replaces tokens in a parsed expression by printed values. A token that is a name becomes a
// text.
type putIn func(string) string

// Visit is called for every node, inner ones first.
func (text putIn) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.StringNode:
		n.Value = text(n.Value)
	case *ast.IdentifierNode:
		if value := text(n.Value); value != n.Value {
			ast.Patch(node, &ast.StringNode{Value: value})
		}
	}
}

// Source returns a text with its expressions, with tokens replaced by printed values.
func Source(s string, text func(string) string) string {
	parts, _, _ := Scan(s)
	var b strings.Builder
	for i, p := range parts {
		switch {
		case p.IsExpr:
			b.WriteString("${ " + source(p.Expr, text) + " }")
			continue
		case i+1 < len(parts) && strings.HasSuffix(text(p.Literal), "$"):
			// Before an expression, a trailing $ would escape it.
			b.WriteString(LiteralText(strings.TrimSuffix(text(p.Literal), "$")) + "{{ '$' }}")
		default:
			b.WriteString(LiteralText(text(p.Literal)))
		}
	}

	return b.String()
}

func source(expr string, text func(string) string) string {
	tree, err := parser.Parse(expr)
	if err != nil || text(expr) == expr {
		return expr
	}
	ast.Walk(&tree.Node, putIn(text))

	return tree.Node.String()
}

// WithHint adds a remedy to an error.
func WithHint(err error, hint string) error { return hintedError{err, hint} }

// HintOf returns the remedy of an error, or an empty text.
func HintOf(err error) string {
	var hinted hintedError
	if errors.As(err, &hinted) {
		return hinted.hint
	}

	return ""
}

type hintedError struct {
	error
	hint string
}

func (e hintedError) Unwrap() error { return e.error }
