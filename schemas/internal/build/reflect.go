package build

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/model/signed"
)

// protocols returns the protocols of types with a protocol field.
func protocols() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[model.AgentStatus]():         model.ProtocolAgent,
		reflect.TypeFor[model.Assignment]():          model.ProtocolAssignment,
		reflect.TypeFor[signed.Statement]():          model.ProtocolStatement,
		reflect.TypeFor[model.CancelRequest]():       model.ProtocolCancelRequest,
		reflect.TypeFor[model.EnsureResponse]():      model.ProtocolEnsureResponse,
		reflect.TypeFor[model.Groups]():              model.ProtocolGroups,
		reflect.TypeFor[model.HealthReport]():        model.ProtocolHealth,
		reflect.TypeFor[model.Labels]():              model.ProtocolLabels,
		reflect.TypeFor[model.NodeState]():           model.ProtocolNode,
		reflect.TypeFor[model.Pause]():               model.ProtocolPause,
		reflect.TypeFor[registration.Registration](): model.ProtocolRegistration,
		reflect.TypeFor[model.Run]():                 model.ProtocolRun,
		reflect.TypeFor[model.RunRequest]():          model.ProtocolRunRequest,
		reflect.TypeFor[model.Transaction]():         model.ProtocolTransaction,
	}
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
	if protocol, ok := protocols()[t]; ok {
		if p, has := s.Properties.Get("protocol"); has {
			p.Const = protocol
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
