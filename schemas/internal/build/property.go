package build

import (
	"encoding"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// The patterns of texts. Both ECMA and Go support their syntax.
const (
	// durationPattern matches the durations of time.ParseDuration without a minus sign.
	durationPattern = `^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// ttlPattern matches a duration or "never".
	ttlPattern = `^(never|\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+))$`
	// offsetPattern matches the durations of time.ParseDuration.
	offsetPattern = `^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	refPattern    = `^[^#]+#[\s\S]+$`
	numberPattern = `^[+-]?[0-9]+$`
	boolPattern   = `^([Tt][Rr][Uu][Ee]|[Yy][Ee][Ss]|[Oo][Nn]|[Ff][Aa][Ll][Ss][Ee]|[Nn][Oo]|[Oo][Ff][Ff])$`
	// expressionPattern matches any text in braces, because an editor cannot know the result of an
	// expression.
	expressionPattern = `\$\{|\{\{`
)

const expressionRef = "#/$defs/expression"

// properties generates the schemas of properties, as the decoder of resources accepts them. A
// scalar is its text, so a number is valid for a string and vice versa.
type properties struct {
	// expressions reports whether a text with an expression is always valid.
	expressions bool
}

// of returns the schema of a property. Null means not set.
func (b properties) of(p resource.Property) *jsonschema.Schema {
	s := orNull(b.value(p.GoType, p.Enum)...)
	s.Description = p.Help
	if p.Default != "" {
		s.Default = p.Default
	}
	if p.Filled {
		s.MinLength = new(uint64(1))
	}

	return s
}

func (b properties) value(t reflect.Type, enum []string) []*jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var out []*jsonschema.Schema
	switch {
	case t == reflect.TypeFor[model.Duration]():
		// Only the duration 0 needs no unit.
		out = []*jsonschema.Schema{{Type: "string", Pattern: durationPattern}, {Const: 0}}
	case t == reflect.TypeFor[model.TTL]():
		out = []*jsonschema.Schema{{Type: "string", Pattern: ttlPattern}, {Const: 0}}
	case t == reflect.TypeFor[model.Ref]():
		out = []*jsonschema.Schema{{Type: "string", Pattern: refPattern}}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[document.ValueUnmarshaler]()):
		return []*jsonschema.Schema{{}}
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return []*jsonschema.Schema{scalar()}
	case len(enum) > 0:
		out = []*jsonschema.Schema{{Enum: values(enum)}}
	default:
		return b.kind(t)
	}

	return b.orExpression(out...)
}

func (b properties) kind(t reflect.Type) []*jsonschema.Schema {
	switch t.Kind() {
	case reflect.String:
		return []*jsonschema.Schema{scalar()}
	case reflect.Bool:
		return b.orExpression(&jsonschema.Schema{Type: "boolean"}, &jsonschema.Schema{Type: "string", Pattern: boolPattern})
	case reflect.Slice:
		return b.orExpression(&jsonschema.Schema{Type: "array", Items: anyOf(b.value(t.Elem(), nil)...)})
	case reflect.Map:
		return b.orExpression(&jsonschema.Schema{Type: "object", AdditionalProperties: orNull(b.value(t.Elem(), nil)...)})
	case reflect.Struct:
		return b.orExpression(b.structure(t))
	case reflect.Interface:
		return []*jsonschema.Schema{{}}
	default:
		return b.orExpression(&jsonschema.Schema{Type: "integer"}, &jsonschema.Schema{Type: "string", Pattern: numberPattern})
	}
}

func (b properties) structure(t reflect.Type) *jsonschema.Schema {
	s := object("")
	for _, f := range document.Fields(t) {
		enum, def := resource.Choices(f.Tag)
		p := orNull(b.value(f.Type, enum)...)
		p.Description = f.Tag.Get("jsonschema_description")
		if def != "" {
			p.Default = def
		}
		s.Properties.Set(f.Key, p)
	}

	return s
}

func (b properties) orExpression(of ...*jsonschema.Schema) []*jsonschema.Schema {
	if !b.expressions {
		return of
	}

	return append(of, &jsonschema.Schema{Ref: expressionRef})
}

func expression() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: expressionPattern, Description: "A text with an expression in ${ } or {{ }}"}
}

// oneOfTypes returns the schema of a value of any of these JSON types.
func oneOfTypes(types ...string) *jsonschema.Schema {
	return &jsonschema.Schema{Extras: map[string]any{"type": types}}
}

func scalar() *jsonschema.Schema { return oneOfTypes("string", "number", "boolean") }

// anyOf combines alternatives. It returns a single alternative unchanged.
func anyOf(of ...*jsonschema.Schema) *jsonschema.Schema {
	if len(of) == 1 {
		return of[0]
	}

	return &jsonschema.Schema{AnyOf: of}
}

// orNull also allows null. The description is that of the first alternative.
func orNull(of ...*jsonschema.Schema) *jsonschema.Schema {
	if types, ok := of[0].Extras["type"].([]string); ok && len(of) == 1 {
		s := oneOfTypes(append(types, "null")...)
		s.Description = of[0].Description
		return s
	}
	s := anyOf(append(of, &jsonschema.Schema{Type: "null"})...)
	s.Description, of[0].Description = of[0].Description, ""

	return s
}

func values(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}

	return out
}

func (b properties) define(t *resource.Type, definitions jsonschema.Definitions) {
	for _, p := range t.Properties {
		definitions[propertyName(t, p)] = b.of(p)
	}
}

func propertyName(t *resource.Type, p resource.Property) string { return t.Name + "." + p.Key }

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
