package targets

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/pkg/version"
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
			p.checkPackageName(n)
			if slices.Contains(versionFunctions(), callee.Value) {
				p.checkVersions(n, callee.Value)
				p.addScheme(node, n, callee.Value)
			}
			if callee.Value == nameUpstream && len(n.Arguments) == 1 {
				n.Arguments[0] = chargedText(n.Arguments[0])
			}
		}
		if ok && p.refused != nil && p.refused.from == callee.Location().From && document.Nearest(callee.Value, p.names) == "" && !slices.Contains(NodeNames(), callee.Value) {
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
	case slices.Contains(NodeNames(), n.Value):
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
		known := p.wordsOf(sides[0])
		if known.all == nil {
			continue
		}
		others := []ast.Node{sides[1]}
		if list, ok := sides[1].(*ast.ArrayNode); ok {
			others = list.Nodes
		}
		for _, other := range others {
			if word, ok := other.(*ast.StringNode); ok && word.Value != "" && !slices.Contains(known.all, word.Value) {
				p.refuse(other, known.name+" is never "+quote(word.Value), hintForWord(word.Value, known.all))
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
	if !isAny(n) || isCallOf(n, nameCharge) {
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

// Remedies for durations and times.
const (
	hintDuration = `write a duration as text, such as "90s", "15m" or "2h30m"`
	hintTime     = `write a time as text, such as "2006-01-02T15:04:05Z", or age(heard) > "1h" for how long ago`
)

// readMoments parses the texts that durations and times are compared with when the expression is compiled. An invalid
// text is an error of the expression.
func (p *patcher) readMoments(n *ast.BinaryNode) {
	switch n.Operator {
	case "==", "!=", "<", "<=", ">", ">=":
	default:
		return
	}
	for _, sides := range []struct{ of, text *ast.Node }{{&n.Left, &n.Right}, {&n.Right, &n.Left}} {
		text, ok := (*sides.text).(*ast.StringNode)
		switch {
		case !ok:
		case isDuration(*sides.of):
			d, err := time.ParseDuration(text.Value)
			if err != nil {
				p.refuse(text, quote(text.Value)+" is no duration", hintDuration)
				return
			}
			*sides.text = constant(text, d)
		case (*sides.of).Type() == reflect.TypeFor[time.Time]():
			at, ok := parseTime(text.Value)
			if !ok {
				p.refuse(text, quote(text.Value)+" is no time", hintTime)
				return
			}
			*sides.text = constant(text, at)
		}
	}
}

// isDuration reports whether a node of the tree is a duration.
func isDuration(n ast.Node) bool {
	return isCallOf(n, "age") || n.Type() == reflect.TypeFor[time.Duration]()
}

// constant returns a constant that replaces a text.
func constant(text *ast.StringNode, v any) ast.Node {
	n := &ast.ConstantNode{Value: v}
	n.SetType(reflect.TypeOf(v))
	n.SetLocation(text.Location())

	return n
}

// parseTime parses a time, in the local zone without a zone.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, true
		}
	}

	return time.Time{}, false
}

// The functions over versions.
const (
	nameVersions = "compare"
	nameOlder    = "older"
	nameNewer    = "newer"
	nameUpstream = "upstream"
)

func versionFunctions() []string { return []string{nameVersions, nameOlder, nameNewer, nameUpstream} }

// compareVersions returns the order of the two versions that a function compares, by a scheme if there is a third
// parameter. known is false if a version is missing.
func compareVersions(function string, p []any) (order int, known bool, err error) {
	scheme := ""
	if len(p) > 2 {
		scheme, _ = p[2].(string)
	}
	var versions [2]string
	for i := range versions {
		text, ok := p[i].(string)
		if p[i] != nil && !ok {
			return 0, false, notVersion(function, i, kind(p[i]))
		}
		versions[i] = text
	}
	if p[0] == nil || p[1] == nil {
		return 0, false, nil
	}
	if order, err = version.CompareBy(scheme, versions[0], versions[1]); err != nil {
		return 0, false, fmt.Errorf("%s: %w", function, err)
	}

	return order, true, nil
}

// notVersion returns the error of an argument, counted from 0, that is not text.
func notVersion(function string, argument int, kind string) error {
	return fmt.Errorf("argument %d of %s is %s, not a version", argument+1, function, kind)
}

// versions returns the functions over versions. A missing version is neither older nor newer.
func versions() []expr.Option {
	is := func(function string, want int) func(...any) (any, error) {
		return func(p ...any) (any, error) {
			order, known, err := compareVersions(function, p)
			return known && order == want, err
		}
	}
	two, three := new(func(any, any) bool), new(func(any, any, any) bool)

	return []expr.Option{
		expr.Function(nameVersions, func(p ...any) (any, error) {
			order, known, err := compareVersions(nameVersions, p)
			if !known {
				return nil, err
			}
			return order, nil
		}, new(func(any, any) any), new(func(any, any, any) any)),
		expr.Function(nameOlder, is(nameOlder, -1), two, three),
		expr.Function(nameNewer, is(nameNewer, 1), two, three),
		expr.Function(nameUpstream, func(p ...any) (any, error) {
			text, ok := p[0].(string)
			switch {
			case p[0] == nil:
				return nil, nil
			case !ok:
				return nil, notVersion(nameUpstream, 0, kind(p[0]))
			default:
				return version.Upstream(text), nil
			}
		}, new(func(any) any)),
	}
}

// checkVersions rejects an argument of a function over versions that is never a version or a scheme.
func (p *patcher) checkVersions(n *ast.CallNode, function string) {
	for i, argument := range n.Arguments {
		is, hint := kindOf(argument), ""
		scheme, isText := argument.(*ast.StringNode)
		switch {
		case i == 2 && is != "":
			p.refuse(argument, fmt.Sprintf("argument %d of %s is %s, not a version scheme", i+1, function, is), hintForWord("", version.Schemes()))
			return
		case i == 2 && isText && !slices.Contains(version.Schemes(), scheme.Value):
			p.refuse(scheme, "unknown version scheme "+quote(scheme.Value), hintForWord(scheme.Value, version.Schemes()))
			continue
		case is == "":
			continue
		case isCallOf(argument, namePackage):
			hint = "write " + argument.String() + ".version"
		case is == kind(0.0) && isLiteral(argument):
			hint = `write it in quotes, such as "1.2"`
		}
		p.refuse(argument, notVersion(function, i, is).Error(), hint)
	}
}

// isLiteral reports whether a node is a number in the expression.
func isLiteral(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	default:
		return false
	}
}

// kindOf returns the kind of an argument that is never text, in a word; empty if it may be text or missing.
func kindOf(n ast.Node) string {
	if isCallOf(n, namePackage) {
		return kind((*Package)(nil))
	}
	is := n.Type()
	if _, isNil := n.(*ast.NilNode); isNil || is == nil || is.Kind() == reflect.Interface || is.Kind() == reflect.String {
		return ""
	}

	return kind(reflect.Zero(is).Interface())
}

// warn adds a warning once, because the tree is visited several times.
func (p *patcher) warn(text string) {
	if !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// warnOfTexts warns of <, <=, > and >= with text, which probably is a version or a number.
func (p *patcher) warnOfTexts(n *ast.BinaryNode) {
	switch n.Operator {
	case "<", "<=", ">", ">=":
	default:
		return
	}
	for _, side := range []ast.Node{n.Left, n.Right} {
		if text, ok := side.(*ast.StringNode); ok {
			p.warn(fmt.Sprintf("%s %s compares texts character by character (\"9\" is more than \"10\"); use older or newer for versions, and a number without quotes for numbers", n.Operator, quote(text.Value)))
			return
		}
	}
}

// safe returns the functions that replace operations of the language on values of unknown type. The language fails on a
// missing value, but facts differ between nodes, so a missing fact compares false here.
func safe() []expr.Option {
	return append(versions(), []expr.Option{
		expr.Function(nameTruth, func(p ...any) (any, error) { return truth(p[0]) }, new(func(any) bool)),
		expr.Function(nameGet, func(p ...any) (any, error) { return get(p[0], p[1]) }, new(func(any, any) any)),
		expr.Function(nameList, func(p ...any) (any, error) { return orEmpty(p[0], []any{}), nil }, new(func(any) any)),
		expr.Function(nameText, func(p ...any) (any, error) { return orEmpty(p[0], ""), nil }, new(func(any) any)),
		expr.Function(nameCompare, func(p ...any) (any, error) { return compare(p[0], p[1], p[2]), nil }, new(func(string, any, any) bool)),
		expr.Function(nameCompute, func(p ...any) (any, error) { return compute(p[0], p[1], p[2]), nil }, new(func(string, any, any) any)),
		expr.Function(nameAbs, func(p ...any) (any, error) { return absolute(p[0]), nil }, new(func(any) any)),
	}...)
}

// truth returns a value as a condition. A missing value is false.
func truth(v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	default:
		return false, fmt.Errorf("a value is %s, not true or false", kind(v))
	}
}

// get returns an element of a mapping, a list or a package, nil for a missing one.
func get(of, key any) (any, error) {
	switch of := of.(type) {
	case *Package:
		return of.value(key)
	case map[string]any:
		if name, ok := key.(string); ok {
			return of[name], nil
		}
	case []any:
		if i, ok := key.(int); ok && i >= 0 && i < len(of) {
			return of[i], nil
		}
	}

	return nil, nil
}

func orEmpty(v, empty any) any {
	if v == nil {
		return empty
	}

	return v
}

// compare compares two values. A missing value is neither less nor more.
func compare(operator, a, b any) bool {
	if a == nil || b == nil {
		return false
	}
	switch operator {
	case "<":
		return runtime.Less(a, b)
	case "<=":
		return runtime.LessOrEqual(a, b)
	case ">":
		return runtime.More(a, b)
	default:
		return runtime.MoreOrEqual(a, b)
	}
}

// compute calculates with two values. The result is missing if one of them is.
func compute(operator, a, b any) any {
	if a == nil || b == nil {
		return nil
	}
	switch operator {
	case "+":
		return runtime.Add(a, b)
	case "-":
		return runtime.Subtract(a, b)
	case "*":
		return runtime.Multiply(a, b)
	default:
		return runtime.Divide(a, b)
	}
}

// absolute returns a number without its sign.
func absolute(v any) any {
	if compare("<", v, 0) {
		return compute("-", 0, v)
	}

	return v
}
