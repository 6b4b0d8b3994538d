// Package build generates the JSON Schemas of package schemas from the Go types.
package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/schemas"
)

// All returns all schemas as JSON, by name.
func All(types resource.Types) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, d := range schemas.Documents() {
		s, err := schemaOf(d, types)
		if err != nil {
			return nil, err
		}
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

func schemaOf(d schemas.Document, types resource.Types) (*jsonschema.Schema, error) {
	switch d.Protocol {
	case "":
		return manifest(types), nil
	case model.ProtocolEnsureRequest:
		return ensureRequest(types), nil
	case model.ProtocolEnsureResponse:
		return response(d.Protocol, "runs"), nil
	case model.ProtocolRunResponse:
		return response(d.Protocol, "state"), nil
	case model.ProtocolAssignment:
		return assignment(), nil
	}
	for t, protocol := range protocols() {
		if protocol == d.Protocol {
			return reflected(t), nil
		}
	}

	return nil, fmt.Errorf("schema %s: unknown protocol %s", d.Name, d.Protocol)
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

// prune removes unused definitions.
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
