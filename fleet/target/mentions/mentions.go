// Package mentions finds the names in expressions, such as groups, labels and facts, and reports the names that a fleet
// does not have.
package mentions

import (
	"fmt"
	"slices"
	"strings"
)

// Space is a kind of names that a fleet has.
type Space string

// The spaces of names.
const (
	Node     Space = "node"
	Host     Space = "host"
	Group    Space = "group"
	Label    Space = "label"
	Manifest Space = "manifest"
	// Key has the keys of assignments: the manifest of a result is one.
	Key  Space = "key"
	Type Space = "type"
	// Resource has references such as file#/etc/motd. Only their types are names.
	Resource Space = "resource"
	Provider Space = "provider"
	Package  Space = "package"
	Manager  Space = "manager"
	Arch     Space = "arch"
	// The names of these spaces are fixed words.
	State   Space = "state"
	Status  Space = "status"
	Outcome Space = "outcome"
	Cause   Space = "cause"
)

// Name is a constant in an expression that is compared with the names of a space.
type Name struct {
	Space Space
	Text  string
	// conversion has the functions that the expression applies to a name of the space before the comparison.
	conversion string
}

// Is reports whether a name of the space equals the constant.
func (n Name) Is(name string) bool { return n.Text == convert(n.conversion, name) }

// convert applies functions to a text.
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

// Set has the names in an expression that a fleet may have or not.
type Set struct {
	// Names are in the order of the expression.
	Names []Name
	// Facts are paths. A path follows its own prefixes.
	Facts []Path
}

// add adds a name, once.
func (s *Set) add(n Name) {
	if n.Text != "" && len(s.Names) < maxNames && !slices.Contains(s.Names, n) {
		s.Names = append(s.Names, n)
	}
}

// addPath adds a path, once.
func (s *Set) addPath(p Path) {
	if len(s.Facts) < maxNames && !slices.ContainsFunc(s.Facts, func(known Path) bool { return slices.Equal(known, p) }) {
		s.Facts = append(s.Facts, p)
	}
}

// Of returns the names of a space.
func (s *Set) Of(space Space) (out []string) {
	for _, n := range s.Names {
		if n.Space == space {
			out = append(out, n.Text)
		}
	}

	return out
}

// InNodes returns the names in a valid expression over nodes.
func InNodes(text string) Set {
	return read(text, map[string]value{"node": {space: Node}, "host": {space: Host}, "groups": {space: Group, isList: true}, "labels": {keys: Label}, "facts": {paths: []Path{{}}}, "state": {space: State}})
}

// InResults returns the names in a valid expression over results of resources.
func InResults(text string) Set {
	return read(text, map[string]value{"node": {space: Node}, "manifest": {space: Key}, "type": {space: Type}, "resource": {space: Resource}, "provider": {space: Provider}, "outcome": {space: Outcome}, "cause": {space: Cause}})
}

// InPackages returns the names in a valid expression over packages.
func InPackages(text string) Set { return read(text, packageValues()) }

// packageValues returns the values of the properties of a package.
func packageValues() map[string]value {
	return map[string]value{"node": {space: Node}, "name": {space: Package}, "arch": {space: Arch}, "manager": {space: Manager}}
}

// InColumns returns the names in columns of nodes, such as labels.rack.
func InColumns(columns []string) (out Set) {
	for _, column := range columns {
		kind, name, _ := strings.Cut(column, ".")
		switch kind {
		case "labels":
			out.add(Name{Space: Label, Text: name})
		case "manifest":
			name, _, _ = strings.Cut(name, ".")
			out.add(Name{Space: Manifest, Text: name})
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
