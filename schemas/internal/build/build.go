// Package build generates the JSON Schemas of package schemas from the Go types.
package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/schemas"
)

// All returns all schemas as JSON, by name.
func All(types resource.Types) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, d := range schemas.Documents() {
		s := schemaOf(d, types)
		s.Version, s.ID, s.Title = jsonschema.Version, jsonschema.ID(schemas.URL(d.Name)), d.Summary
		text, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", d.Name, err)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return nil, fmt.Errorf("schema %s: %w", d.Name, err)
		}
		b.WriteByte('\n')
		out[d.Name] = b.Bytes()
	}

	return out, nil
}

func schemaOf(d schemas.Document, types resource.Types) *jsonschema.Schema {
	switch d.Protocol {
	case "":
		return manifest(types)
	case model.ProtocolEnsureRequest:
		return ensureRequest(types)
	case model.ProtocolEnsureResponse:
		return response(d.Protocol, "runs")
	case model.ProtocolRunResponse:
		return response(d.Protocol, "state")
	case model.ProtocolAssignment:
		return assignment()
	}

	return reflected(d.Type)
}

// response returns the schema of a response, without the field of the other kind of response.
func response(protocol, without string) *jsonschema.Schema {
	s := reflected(reflect.TypeFor[model.EnsureResponse]())
	s.Properties.Delete(without)
	if p, has := s.Properties.Get("protocol"); has {
		*p = jsonschema.Schema{Type: "string", Const: protocol}
	}
	prune(s)

	return s
}

func prune(s *jsonschema.Schema) {
	for name := range s.Definitions {
		text, err := json.Marshal(s)
		if err == nil && !bytes.Contains(text, []byte(`"#/$defs/`+name+`"`)) {
			delete(s.Definitions, name)
			prune(s)
			return
		}
	}
}

// assignment returns the schema of an assignment: it has a manifest or the digest of a bundle.
func assignment() *jsonschema.Schema {
	s := reflected(reflect.TypeFor[model.Assignment]())
	s.OneOf = []*jsonschema.Schema{{Required: []string{"manifest"}}, {Required: []string{"bundle"}}}

	return s
}

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

// reflected returns the schema of a document of package model, as encoding/json writes it, with
// null for nil slices and maps.
func reflected(t reflect.Type) *jsonschema.Schema {
	named := map[string]reflect.Type{}
	r := jsonschema.Reflector{
		ExpandedStruct: true,
		Anonymous:      true,
		Mapper:         special,
		Namer: func(t reflect.Type) string {
			named[t.Name()] = t
			return t.Name()
		},
	}
	s := r.ReflectFromType(t)
	complete(s, t)
	for name, definition := range s.Definitions {
		complete(definition, named[name])
	}

	return s
}

// special returns the schemas of types that are written as text.
func special(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[model.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case reflect.TypeFor[model.TTL]():
		return &jsonschema.Schema{Type: "string", Pattern: ttlPattern}
	case reflect.TypeFor[model.Offset]():
		return &jsonschema.Schema{Type: "string", Pattern: offsetPattern}
	case reflect.TypeFor[model.Ref]():
		return &jsonschema.Schema{Type: "string", Pattern: refPattern}
	default:
		return nil
	}
}

// complete adds to the schema of a struct what reflection cannot find: its protocol, and null for
// nil slices and maps that are not omitted.
func complete(s *jsonschema.Schema, t reflect.Type) {
	if t == nil || t.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	for _, d := range schemas.Documents() {
		if p, has := s.Properties.Get("protocol"); has && d.Type == t && d.Protocol != model.ProtocolRunResponse {
			p.Const = d.Protocol
		}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, has := s.Properties.Get(key)
		isNil := f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map
		if !has || !isNil || strings.Contains(options, "omit") || f.Type == reflect.TypeFor[json.RawMessage]() {
			continue
		}
		description := p.Description
		p.Description = ""
		s.Properties.Set(key, &jsonschema.Schema{Description: description, AnyOf: []*jsonschema.Schema{p, {Type: "null"}}})
	}
}
