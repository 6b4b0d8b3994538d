package build

import (
	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// ensureRequest returns the schema of an ensure request. Its properties are literal properties of
// the type. A request has no control property, because the sender decides before sending it.
func ensureRequest(types resource.Types) *jsonschema.Schema {
	s := object("",
		field{"protocol", &jsonschema.Schema{Const: model.ProtocolEnsureRequest}},
		field{"type", &jsonschema.Schema{Enum: values(types.Names()), Description: "Resource type"}},
		field{"properties", &jsonschema.Schema{Type: "object", Description: "The resource's properties, name included"}},
		field{"id", &jsonschema.Schema{Type: "string", Description: "Identifies the request; a repeated id is not executed again"}},
		field{"expires", &jsonschema.Schema{Type: "string", Format: "date-time", Description: "Time after which the request is not executed"}},
		field{"noop", &jsonschema.Schema{Type: "boolean", Description: "Only report what would change"}},
		field{"check", &jsonschema.Schema{Type: "boolean", Description: "The command only reads: it runs and does not count as a change; for the type exec"}},
	)
	s.Required = []string{"protocol", "type", "properties"}
	s.Definitions = jsonschema.Definitions{}
	for _, t := range types {
		properties{}.define(t, s.Definitions)
		delete(s.Definitions, t.Name+".control")
		s.Definitions[t.Name] = named(t, "control")
		is := object("", field{"type", &jsonschema.Schema{Const: t.Name}})
		is.Type, is.AdditionalProperties, is.Required = "", nil, []string{"type"}
		has := object("", field{"properties", &jsonschema.Schema{Ref: "#/$defs/" + t.Name}})
		has.Type, has.AdditionalProperties = "", nil
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is, Then: has})
	}

	return s
}
