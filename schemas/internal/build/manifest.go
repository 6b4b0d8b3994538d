package build

import (
	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

func manifest(types resource.Types) *jsonschema.Schema {
	s := object("",
		field{"data", free("Values for expressions, as Data.name or lookup('data.name')")},
		field{"hierarchy", orNull(hierarchy())},
		field{"overrides", orNull(&jsonschema.Schema{Type: "object", AdditionalProperties: free(""), Description: "Data by the names in hierarchy.order"})},
		field{"muster", &jsonschema.Schema{Ref: "#/$defs/section"}},
		field{"ccm", &jsonschema.Schema{Ref: "#/$defs/section", Description: "Another name of muster"}},
	)
	s.Not = &jsonschema.Schema{Required: []string{"muster", "ccm"}}
	s.Definitions = jsonschema.Definitions{"expression": expression(), "section": orNull(section()), "entry": anyOf(entry(types), group()), "each": each()}
	for _, t := range types {
		properties{expressions: true}.define(t, s.Definitions)
		s.Definitions[t.Name] = block(t)
		s.Definitions[t.Name+".defaults"] = orNull(mapping(t, "name", "alias"))
		item := mapping(t, "name")
		item.Properties.Set("each", &jsonschema.Schema{Ref: "#/$defs/each"})
		s.Definitions[t.Name+".item"] = orNull(item)
		s.Definitions[t.Name+".single"] = named(t)
	}

	return s
}

func hierarchy() *jsonschema.Schema {
	return object("Which overrides apply, and how",
		field{"order", orNull(&jsonschema.Schema{Type: "array", Items: scalar(), Description: "Names of overrides; merge first takes the first that exists, merge deep lets the last win"})},
		field{"merge", &jsonschema.Schema{Enum: []any{"first", "deep"}, Default: "first", Description: "Take the first that matches, or merge all that do"}},
	)
}

// entry returns the schema of resources by type.
func entry(types resource.Types) *jsonschema.Schema {
	s := object("")
	for _, t := range types {
		s.Properties.Set(t.Name, &jsonschema.Schema{Ref: "#/$defs/" + t.Name})
	}
	s.MinProperties = new(uint64(1))

	return s
}

// each returns the schema of the elements of a loop.
func each() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "array"}, {Type: "object"}, {Ref: "#/$defs/expression"}, {Type: "null"}}, Description: "A list or mapping: one resource for each element, which expressions see as each.key and each.value"}
}

// group returns the schema of resources with a common loop or condition.
func group() *jsonschema.Schema {
	condition := func() *jsonschema.Schema { return orNull(scalar()) }
	s := object("Resources with a common loop or condition",
		field{"each", &jsonschema.Schema{Ref: "#/$defs/each"}},
		field{"control", orNull(object("Conditions under which the resources are managed", field{"if", condition()}, field{"unless", condition()}))},
		field{"resources", orNull(&jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/entry"}})},
	)
	s.Required = []string{"resources"}
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"each"}}, {Required: []string{"control"}}}

	return s
}

func section() *jsonschema.Schema {
	b := properties{expressions: true}
	stop := orNull(b.orExpression(&jsonschema.Schema{Type: "boolean"})...)
	stop.Description = "Stop at the first resource that fails"
	limit := orNull(b.orExpression(&jsonschema.Schema{Type: "integer", Minimum: "0", Default: 0})...)
	limit.Description = "The most changes that an agent makes a minute; 0 for any number"

	return object("Settings and resources",
		field{"fail_on_error", stop},
		field{"flapping", flapping()},
		field{"limit", limit},
		field{"pre_message", message("Shown before the run")},
		field{"post_message", message("Shown after the run")},
		field{"resources_jet_file", message("Path of a Jet template, with [[ ]], that renders the list of resources instead")},
		field{"resources", orNull(&jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/entry"}, Description: "Resources; without dependencies they run in this order"})},
	)
}

func flapping() *jsonschema.Schema {
	limits := object("",
		field{"repairs", &jsonschema.Schema{Type: "integer", Minimum: "1", Maximum: "100", Default: model.DefaultFlapping.Repairs, Description: "Repairs in that time before the resource counts as flapping"}},
		field{"within", &jsonschema.Schema{Type: "string", Default: model.DefaultFlapping.Within.String(), Description: "Duration from 1s to 24h"}},
	)
	s := orNull(anyOf(&jsonschema.Schema{Enum: []any{"off", false}}, limits))
	s.Description = "When a resource that keeps changing counts as flapping; its repairs then back off"

	return s
}

// block returns the schema of the value of a type: a list of items with one name each, or the
// single form with a name property.
func block(t *resource.Type) *jsonschema.Schema {
	item := object("", field{"defaults", &jsonschema.Schema{Ref: "#/$defs/" + t.Name + ".defaults", Description: "Properties of all that follow in this list"}})
	item.MinProperties, item.MaxProperties = new(uint64(1)), new(uint64(1))
	item.AdditionalProperties = &jsonschema.Schema{Ref: "#/$defs/" + t.Name + ".item"}
	s := anyOf(&jsonschema.Schema{Type: "array", Items: item}, &jsonschema.Schema{Ref: "#/$defs/" + t.Name + ".single"})
	s.Description = t.Summary

	return s
}

type field struct {
	key    string
	schema *jsonschema.Schema
}

func object(description string, fields ...field) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Description: description, Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, f := range fields {
		s.Properties.Set(f.key, f.schema)
	}

	return s
}

func free(description string) *jsonschema.Schema {
	s := oneOfTypes("object", "null")
	s.Description = description

	return s
}

func message(description string) *jsonschema.Schema {
	s := orNull(scalar())
	s.Description = description

	return s
}
