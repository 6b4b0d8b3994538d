package build

import (
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/resources/resource"
)

// define adds the schema of every property of a type to definitions.
func (b properties) define(t *resource.Type, definitions jsonschema.Definitions) {
	for _, p := range t.Properties {
		definitions[propertyName(t, p)] = b.of(p)
	}
}

func propertyName(t *resource.Type, p resource.Property) string { return t.Name + "." + p.Key }

// mapping returns the schema of a mapping of the properties of a type, except some. Only one of a
// property and its aliases is allowed.
func mapping(t *resource.Type, without ...string) *jsonschema.Schema {
	s := object("")
	for _, p := range t.Properties {
		if slices.Contains(without, p.Key) {
			continue
		}
		ref := "#/$defs/" + propertyName(t, p)
		s.Properties.Set(p.Key, &jsonschema.Schema{Ref: ref})
		names := append([]string{p.Key}, p.Aliases...)
		for i, alias := range p.Aliases {
			s.Properties.Set(alias, &jsonschema.Schema{Ref: ref, Description: "Another name of " + p.Key, Deprecated: true})
			for _, other := range names[:i+1] {
				s.AllOf = append(s.AllOf, &jsonschema.Schema{Not: &jsonschema.Schema{Required: []string{other, alias}}})
			}
		}
	}

	return s
}

// named returns the schema of a mapping of a type with a name.
func named(t *resource.Type, without ...string) *jsonschema.Schema {
	s := mapping(t, without...)
	name := scalar()
	name.Description = t.NameHelp
	s.Properties.Set("name", name)
	s.Required = []string{"name"}

	return s
}
