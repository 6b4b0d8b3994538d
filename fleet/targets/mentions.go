package targets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// Space is a kind of names that a fleet has.
type Space string

// The spaces of names.
const (
	SpaceNode     Space = "node"
	SpaceHost     Space = "host"
	SpaceGroup    Space = "group"
	SpaceLabel    Space = "label"
	SpaceManifest Space = "manifest"
	// SpaceKey contains the keys of assignments, including the manifest of a result.
	SpaceKey  Space = "key"
	SpaceType Space = "type"
	// SpaceResource contains references such as file#/etc/motd. Only their types are names.
	SpaceResource Space = "resource"
	SpaceProvider Space = "provider"
	SpacePackage  Space = "package"
	SpaceManager  Space = "manager"
	SpaceArch     Space = "arch"
	// The names of these spaces are fixed words.
	SpaceState   Space = "state"
	SpaceStatus  Space = "status"
	SpaceOutcome Space = "outcome"
	SpaceCause   Space = "cause"
)

// Mention is a name in an expression, such as a label or a fact.
type Mention struct {
	Space Space
	Text  string
	// conversion has the functions that the expression applies to a name of the space before the comparison.
	conversion string
}

// Is reports whether a name of the space equals the constant.
func (n Mention) Is(name string) bool { return n.Text == convert(n.conversion, name) }

func convert(functions, text string) string {
	for name := range strings.FieldsSeq(functions) {
		switch name {
		case "lower":
			text = strings.ToLower(text)
		case "upper":
			text = strings.ToUpper(text)
		case "trim":
			text = strings.TrimSpace(text)
		}
	}

	return text
}

// Step is an element of a path of facts: a key of a mapping, or an element of a list.
type Step struct {
	Key string
	// IsIndex selects the element of a list at Index, IsAny every element.
	IsIndex, IsAny bool
	Index          int
	// IsMember ends a path: a list there may have Key as an element.
	IsMember bool
}

// Path is a path of facts.
type Path []Step

// String returns the path as expressions have it.
func (p Path) String() string {
	var b strings.Builder
	b.WriteString("facts")
	for _, s := range p {
		switch {
		case s.IsAny:
			b.WriteString("[]")
		case s.IsIndex:
			fmt.Fprintf(&b, "[%d]", s.Index)
		default:
			b.WriteString("." + s.Key)
		}
	}

	return b.String()
}

// maxNames is the maximum number of names, and of paths, in a set. Expressions have no more parts.
const maxNames = 1000

// Mentions lists the names in an expression.
type Mentions struct {
	// Names are in the order of the expression.
	Names []Mention
	// Facts are paths. A path follows its own prefixes.
	Facts []Path
}

func (s *Mentions) add(n Mention) {
	if n.Text != "" && len(s.Names) < maxNames && !slices.Contains(s.Names, n) {
		s.Names = append(s.Names, n)
	}
}

func (s *Mentions) addPath(p Path) {
	if len(s.Facts) < maxNames && !slices.ContainsFunc(s.Facts, func(known Path) bool { return slices.Equal(known, p) }) {
		s.Facts = append(s.Facts, p)
	}
}

// Of returns the names of a space.
func (s *Mentions) Of(space Space) (out []string) {
	for _, n := range s.Names {
		if n.Space == space {
			out = append(out, n.Text)
		}
	}

	return out
}

// The identifiers of each kind of expression that are names of the fleet.
var (
	nodeValues     = map[string]value{"node": {space: SpaceNode}, "host": {space: SpaceHost}, "groups": {space: SpaceGroup, isList: true}, "labels": {keys: SpaceLabel}, "facts": {paths: []Path{{}}}, "state": {space: SpaceState}}
	resultValues   = map[string]value{"node": {space: SpaceNode}, "manifest": {space: SpaceKey}, "type": {space: SpaceType}, "resource": {space: SpaceResource}, "provider": {space: SpaceProvider}, "outcome": {space: SpaceOutcome}, "cause": {space: SpaceCause}}
	packageValues  = map[string]value{"node": {space: SpaceNode}, "name": {space: SpacePackage}, "arch": {space: SpaceArch}, "manager": {space: SpaceManager}}
	manifestValues = map[string]value{"status": {space: SpaceStatus}, "outcome": {space: SpaceOutcome}}
)

// InColumns returns the names in columns of nodes, such as labels.rack.
func InColumns(columns []string) (out Mentions) {
	for _, column := range columns {
		kind, name, _ := strings.Cut(column, ".")
		switch kind {
		case "labels":
			out.add(Mention{Space: SpaceLabel, Text: name})
		case "manifest":
			name, _, _ = strings.Cut(name, ".")
			out.add(Mention{Space: SpaceManifest, Text: name})
		case "facts":
			var path Path
			for key := range strings.SplitSeq(name, ".") {
				path = append(path, Step{Key: key})
			}
			out.addPath(path)
		}
	}

	return out
}

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

func (v value) isConstant() bool { return len(v.texts) > 0 && v.space == "" && v.paths == nil }

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
		return value{members: manifestValues}
	case callee.Value == "package":
		r.addAll(SpacePackage, first.texts)
		return value{members: packageValues}
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
