package targets

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/document"
)

// patcher records the names that an expression uses, rejects costly and pointless parts, and inserts the functions of
// safe where a value may be missing.
type patcher struct {
	vocabulary
	used     map[string]bool
	warnings []string
	refused  *Error
}

// Visit is called for every node of the tree, inner ones first.
func (p *patcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		p.name(node, n)
	case *ast.MemberNode:
		p.checkPackageMember(n)
		if isAny(n.Node) {
			ast.Patch(node, call(nameGet, n.Node, n.Property))
		}
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok {
			p.refuse(n, "only names can be called", p.hintForFunction())
		}
		if ok {
			p.checkScheme(n, callee.Value)
			p.checkVersions(n, callee.Value)
			p.checkPackageName(n)
			if slices.Contains(versionFunctions(), callee.Value) {
				p.addScheme(node, n, callee.Value)
			}
			if callee.Value == nameUpstream && len(n.Arguments) == 1 {
				n.Arguments[0] = chargedText(n.Arguments[0])
			}
		}
		if ok && p.refused != nil && p.refused.from == callee.Location().From && document.Nearest(callee.Value, p.names) == "" && !slices.Contains(nodeNames(), callee.Value) {
			p.refused.Hint = p.hintForFunction()
		}
	case *ast.BuiltinNode:
		p.builtin(n)
	case *ast.PredicateNode:
		n.Node = call(nameStep, n.Node)
	case *ast.UnaryNode:
		switch {
		case n.Operator == "!" || n.Operator == "not":
			n.Node = condition(n.Node)
		case isAny(n.Node):
			ast.Patch(node, call(nameCompute, &ast.StringNode{Value: n.Operator}, &ast.IntegerNode{}, n.Node))
		}
	case *ast.ConditionalNode:
		n.Cond = condition(n.Cond)
	case *ast.BinaryNode:
		p.binary(node, n)
	case *ast.VariableDeclaratorNode, *ast.SliceNode, *ast.SequenceNode, *ast.MapNode:
		p.refuse(n, "let, slices, sequences and mappings are not part of expressions", "")
	}
}

// name records a name and replaces facts with a call that reads them. It rejects unknown names in arguments of functions,
// which the language ignores.
func (p *patcher) name(node *ast.Node, n *ast.IdentifierNode) {
	switch {
	case n.Value == "facts" && slices.Contains(p.names, n.Value):
		p.used[n.Value] = true
		ast.Patch(node, call(nameFacts))
	case slices.Contains(p.names, n.Value):
		p.used[n.Value] = true
	case slices.Contains(nodeNames(), n.Value):
		p.refuse(n, n.Value+" is of nodes, not of results", "--on selects nodes by it")
	case n.Value != nameAbs && !slices.Contains(versionFunctions(), n.Value):
		p.refuse(n, "unknown name "+n.Value, p.hintForName(n.Value))
	}
}

func (p *patcher) builtin(n *ast.BuiltinNode) {
	if !slices.Contains(functions(), n.Name) {
		p.refuse(n, "unknown function "+n.Name, p.hintForFunction())
		return
	}
	if len(n.Arguments) == 0 {
		return
	}
	first := &n.Arguments[0]
	switch kind := (*first).Type().Kind(); {
	case kind != reflect.Interface && kind != reflect.String:
	case n.Name == "lower" || n.Name == "upper" || n.Name == "trim":
		*first = call(nameText, chargedText(*first))
	case n.Name == "len" && kind == reflect.String:
		*first = chargedText(*first)
	case n.Name == "len":
		*first = call(nameList, charged(*first, false))
	case kind == reflect.Interface:
		*first = call(nameList, *first)
	}
}

func (p *patcher) binary(node *ast.Node, n *ast.BinaryNode) {
	p.checkFunctions(n)
	p.checkWords(n)
	p.checkPackageOperand(n)
	if p.readMoments(n); p.refused != nil {
		return
	}
	p.warnOfTexts(n)
	unsure := isAny(n.Left) || isAny(n.Right)
	switch n.Operator {
	case "and", "&&", "or", "||":
		n.Left, n.Right = condition(n.Left), condition(n.Right)
	case "<", "<=", ">", ">=":
		if unsure {
			ast.Patch(node, call(nameCompare, &ast.StringNode{Value: n.Operator}, charged(n.Left, true), charged(n.Right, true)))
		}
	case "+", "-", "*", "/":
		if unsure {
			ast.Patch(node, call(nameCompute, &ast.StringNode{Value: n.Operator}, charged(n.Left, true), charged(n.Right, true)))
		}
	case "==", "!=":
		n.Left, n.Right = charged(n.Left, true), charged(n.Right, true)
	case "contains", "startsWith", "endsWith":
		n.Left, n.Right = chargedText(n.Left), chargedText(n.Right)
	case "in":
		n.Left, n.Right = charged(n.Left, true), charged(n.Right, false)
	case "matches":
		n.Left = chargedText(n.Left)
		if _, ok := n.Right.(*ast.StringNode); !ok {
			p.refuse(n.Right, "the pattern of matches is no literal text", `write it in quotes, such as node matches "^web[0-9]+$"`)
		}
	case "..", "%", "**", "^":
		p.refuse(n, "unknown operator "+n.Operator, "the operators are == != < <= > >= in contains startsWith endsWith matches && || ! + - * / ?: ??")
	}
}

// checkFunctions rejects a function that is not called, because no comparison with it is true.
func (p *patcher) checkFunctions(n *ast.BinaryNode) {
	for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		name, ok := sides[0].(*ast.IdentifierNode)
		if !ok || !slices.Contains(p.functions, name.Value) {
			continue
		}
		hint := `write group("web"), manifest("motd").status == "ok", age(heard) > "1h"`
		if word, ok := sides[1].(*ast.StringNode); ok && name.Value == "group" {
			hint = fmt.Sprintf("write group(%q)", word.Value)
		} else if ok && name.Value == namePackage {
			hint = fmt.Sprintf("write package(%q) != nil", word.Value)
		}
		p.refuse(name, name.Value+" is a function", hint)
	}
}

// checkWords rejects the comparison of a name with a word that it never has.
func (p *patcher) checkWords(n *ast.BinaryNode) {
	if n.Operator != "==" && n.Operator != "!=" && n.Operator != "in" {
		return
	}
	for _, sides := range [][2]ast.Node{{n.Left, n.Right}, {n.Right, n.Left}} {
		name, known := p.wordsOf(sides[0])
		if known == nil {
			continue
		}
		others := []ast.Node{sides[1]}
		if list, ok := sides[1].(*ast.ArrayNode); ok {
			others = list.Nodes
		}
		for _, other := range others {
			if word, ok := other.(*ast.StringNode); ok && word.Value != "" && !slices.Contains(known, word.Value) {
				p.refuse(other, name+" is never "+quote(word.Value), hintForWord(word.Value, known))
			}
		}
	}
}

// refuse records the first problem.
func (p *patcher) refuse(n ast.Node, message, hint string) {
	if p.refused == nil {
		p.refused = &Error{Message: message, Hint: hint, from: n.Location().From}
	}
}

// condition returns a node as a condition. A missing value is false.
func condition(n ast.Node) ast.Node {
	if !isAny(n) {
		return n
	}

	return call(nameTruth, n)
}

// charged returns an operand of unknown type with a call that counts its bytes.
func charged(n ast.Node, deep bool) ast.Node {
	if c, ok := n.(*ast.CallNode); ok {
		if callee, ok := c.Callee.(*ast.IdentifierNode); ok && callee.Value == nameCharge {
			return n
		}
	}
	if !isAny(n) {
		return n
	}
	counted := call(nameCharge, n, &ast.BoolNode{Value: deep})
	counted.SetLocation(n.Location())

	return counted
}

// chargedText is charged for an operand that may be a text.
func chargedText(n ast.Node) ast.Node {
	if _, isLiteral := n.(*ast.StringNode); !isLiteral && n.Type().Kind() == reflect.String {
		counted := call(nameCharge, n, &ast.BoolNode{Value: true})
		counted.SetLocation(n.Location())
		return counted
	}

	return charged(n, true)
}

// isAny reports whether the type of a node is known only during evaluation.
func isAny(n ast.Node) bool { return n.Type().Kind() == reflect.Interface }

func call(name string, arguments ...ast.Node) ast.Node {
	n := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: arguments}
	if len(arguments) > 0 {
		n.SetLocation(arguments[len(arguments)-1].Location())
	}

	return n
}
