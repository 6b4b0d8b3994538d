package targets

import (
	"fmt"
	"slices"
	"strings"
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

// Mentions lists the names in an expression.
type Mentions struct {
	// Names are in the order of the expression.
	Names []Mention
	// Facts are paths. A path follows its own prefixes.
	Facts []Path
}

// add adds a name, once.
func (s *Mentions) add(n Mention) {
	if n.Text != "" && len(s.Names) < maxNames && !slices.Contains(s.Names, n) {
		s.Names = append(s.Names, n)
	}
}

// addPath adds a path, once.
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

// InNodes returns the names in a valid expression over nodes.
func InNodes(text string) Mentions {
	return read(text, map[string]value{"node": {space: SpaceNode}, "host": {space: SpaceHost}, "groups": {space: SpaceGroup, isList: true}, "labels": {keys: SpaceLabel}, "facts": {paths: []Path{{}}}, "state": {space: SpaceState}})
}

// InResults returns the names in a valid expression over results of resources.
func InResults(text string) Mentions {
	return read(text, map[string]value{"node": {space: SpaceNode}, "manifest": {space: SpaceKey}, "type": {space: SpaceType}, "resource": {space: SpaceResource}, "provider": {space: SpaceProvider}, "outcome": {space: SpaceOutcome}, "cause": {space: SpaceCause}})
}

// InPackages returns the names in a valid expression over packages.
func InPackages(text string) Mentions { return read(text, packageValues()) }

// packageValues returns the values of the properties of a package.
func packageValues() map[string]value {
	return map[string]value{"node": {space: SpaceNode}, "name": {space: SpacePackage}, "arch": {space: SpaceArch}, "manager": {space: SpaceManager}}
}

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
