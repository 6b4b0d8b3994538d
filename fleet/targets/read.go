package targets

import (
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// maxTexts limits the constants that a part of an expression can be, and maxForks the combinations of constants and the paths.
const (
	maxTexts = maxNames
	maxForks = 100
)

// value is what a part of an expression can be, as far as that is known before the expression is evaluated.
type value struct {
	// texts are constants, space are all names of a space after a conversion. isList is a list of these.
	texts      []string
	space      Space
	conversion string
	isList     bool
	// index is a constant number.
	index *int
	// keys has the space of the keys of a mapping, members the spaces of the properties of a package.
	keys    Space
	members map[string]value
	// paths are paths of facts.
	paths []Path
}

// isConstant reports whether the value is a constant.
func (v value) isConstant() bool { return len(v.texts) > 0 && v.space == "" && v.paths == nil }

// element returns an element of the list.
func (v value) element() value {
	out := value{paths: extend(v.paths, Step{IsAny: true})}
	if v.isList {
		out.texts, out.space, out.conversion = v.texts, v.space, v.conversion
	}

	return out
}

// or returns a value that is one of two. It has a space only if it is a name of that space or a constant.
func (v value) or(other value) value {
	out := value{texts: union(v.texts, other.texts), isList: v.isList && other.isList, paths: limit(slices.Concat(v.paths, other.paths), maxForks)}
	switch {
	case v.space == other.space && v.conversion == other.conversion || other.isConstant():
		out.space, out.conversion = v.space, v.conversion
	case v.isConstant():
		out.space, out.conversion = other.space, other.conversion
	}

	return out
}

// plus returns the combinations of two constants.
func (v value) plus(other value) (out value) {
	if !v.isConstant() || !other.isConstant() || len(v.texts)*len(other.texts) > maxForks {
		return out
	}
	for _, text := range v.texts {
		for _, end := range other.texts {
			out.texts = append(out.texts, text+end)
		}
	}

	return out
}

// union returns the texts of two lists, each once.
func union(a, b []string) []string {
	out := slices.Clip(a)
	for _, text := range b {
		if len(out) < maxTexts && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}

	return out
}

func limit[T any](all []T, count int) []T { return all[:min(len(all), count)] }

// extend returns the paths with another step.
func extend(paths []Path, step Step) (out []Path) {
	for _, p := range paths {
		out = append(out, append(slices.Clip(p), step))
	}

	return out
}

// reader finds the names in an expression: it follows constants and names of the fleet to the comparisons between them.
type reader struct {
	values map[string]value
	found  Mentions
	// elements are the values of #, the innermost last.
	elements []value
}

// read returns the names in a valid expression, by the values of its identifiers.
func read(text string, values map[string]value) Mentions {
	tree, err := parser.Parse(text)
	if err != nil {
		return Mentions{}
	}
	r := &reader{values: values}
	r.read(tree.Node)

	return r.found
}

// read returns the value of a node of the tree, and adds the names in it.
func (r *reader) read(node ast.Node) value {
	switch n := node.(type) {
	case *ast.StringNode:
		return value{texts: []string{n.Value}}
	case *ast.IntegerNode:
		return value{index: &n.Value}
	case *ast.IdentifierNode:
		return r.values[n.Value]
	case *ast.PointerNode:
		if n.Name == "" && len(r.elements) > 0 {
			return r.elements[len(r.elements)-1]
		}
	case *ast.ArrayNode:
		return r.array(n)
	case *ast.ChainNode:
		return r.read(n.Node)
	case *ast.PredicateNode:
		return r.read(n.Node)
	case *ast.UnaryNode:
		if v := r.read(n.Node); n.Operator == "-" && v.index != nil {
			negative := -*v.index
			return value{index: &negative}
		}
	case *ast.ConditionalNode:
		r.read(n.Cond)
		return r.read(n.Exp1).or(r.read(n.Exp2))
	case *ast.MemberNode:
		return r.member(r.read(n.Node), r.read(n.Property))
	case *ast.CallNode:
		return r.call(n)
	case *ast.BuiltinNode:
		return r.builtin(n)
	case *ast.BinaryNode:
		return r.binary(n.Operator, r.read(n.Left), r.read(n.Right))
	}

	return value{}
}

// array returns a list of what its elements can be.
func (r *reader) array(n *ast.ArrayNode) value {
	var out value
	for i, element := range n.Nodes {
		v := r.read(element)
		if i == 0 {
			out = v
		} else {
			out = out.or(v)
		}
	}
	out.isList, out.paths = true, nil

	return out
}

// member returns an element or a property of a value.
func (r *reader) member(of, property value) value {
	switch {
	case of.keys != "":
		r.addAll(of.keys, property.texts)
	case of.isList:
		return of.element()
	case of.members != nil && len(property.texts) == 1:
		return of.members[property.texts[0]]
	case of.paths != nil:
		return r.step(of.paths, property)
	}

	return value{}
}

// step returns the facts below paths.
func (r *reader) step(paths []Path, property value) value {
	var out value
	switch {
	case property.isConstant():
		for _, key := range property.texts {
			out.paths = append(out.paths, extend(paths, Step{Key: key})...)
		}
	case property.index != nil:
		out.paths = extend(paths, Step{IsIndex: true, Index: *property.index})
	default:
		return out
	}
	out.paths = limit(out.paths, maxForks)
	r.addPaths(out.paths)

	return out
}

func (r *reader) addPaths(paths []Path) {
	for _, p := range paths {
		r.found.addPath(p)
	}
}

func (r *reader) addAll(space Space, names []string) {
	if space == "" {
		return
	}
	for _, name := range names {
		r.found.add(Mention{Space: space, Text: name})
	}
}

// call returns the result of a function of this package.
func (r *reader) call(n *ast.CallNode) value {
	var first value
	for i, argument := range n.Arguments {
		if v := r.read(argument); i == 0 {
			first = v
		}
	}
	callee, _ := n.Callee.(*ast.IdentifierNode)
	switch {
	case callee == nil:
	case callee.Value == "group":
		r.addAll(SpaceGroup, first.texts)
	case callee.Value == "manifest":
		r.addAll(SpaceManifest, first.texts)
		return value{members: map[string]value{"status": {space: SpaceStatus}, "outcome": {space: SpaceOutcome}}}
	case callee.Value == "package":
		r.addAll(SpacePackage, first.texts)
		return value{members: packageValues()}
	}

	return value{}
}

// builtin returns the result of a function of the language.
func (r *reader) builtin(n *ast.BuiltinNode) value {
	var first value
	for i, argument := range n.Arguments {
		if i == 0 {
			first = r.read(argument)
			continue
		}
		r.elements = append(r.elements, first.element())
		r.read(argument)
		r.elements = r.elements[:len(r.elements)-1]
	}
	switch n.Name {
	case "lower", "upper", "trim":
		out := value{space: first.space, conversion: first.conversion + " " + n.Name}
		for _, text := range first.texts {
			out.texts = append(out.texts, convert(n.Name, text))
		}
		return out
	}

	return value{}
}

// binary returns the result of an operator, and adds the constants that names are compared with.
func (r *reader) binary(operator string, left, right value) value {
	switch operator {
	case "==", "!=":
		r.compare(left, right)
	case "in":
		r.addAll(right.keys, left.texts)
		r.compare(left, right.element())
		for _, key := range left.texts {
			r.addPaths(extend(right.paths, Step{Key: key, IsMember: true}))
		}
	case "+":
		return left.plus(right)
	case "??":
		return left.or(right)
	}

	return value{}
}

// compare adds the constants that are compared with names. It skips a constant that the other side may be itself.
func (r *reader) compare(left, right value) {
	for _, sides := range [][2]value{{left, right}, {right, left}} {
		names := sides[0]
		for _, text := range sides[1].texts {
			if names.space != "" && !slices.Contains(names.texts, text) {
				r.found.add(nameOf(names, text))
			}
		}
	}
}

// nameOf returns the name that a text compared with names means.
func nameOf(names value, text string) Mention {
	if names.space == SpaceResource {
		kind, _, _ := strings.Cut(text, "#")
		return Mention{Space: SpaceType, Text: kind, conversion: names.conversion}
	}

	return Mention{Space: names.space, Text: text, conversion: names.conversion}
}
