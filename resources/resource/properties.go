package resource

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Property is one property of a type, from its field. Manifests, flags, schemas
// and documentation are derived from it.
type Property struct {
	Key     string
	Aliases []string
	// Help is the field's jsonschema_description; of ensure the type's EnsureHelp.
	Help string
	// Enum and Default are from the field's jsonschema tag; those of ensure and
	// provider are the type's.
	Enum    []string
	Default string
	// Sensitive, by the tag sensitive:"true", means that the resource's sensitive
	// property hides its value wherever it appears.
	Sensitive bool
	// Filled, by the tag filled:"true", means that it must not be an empty text: an
	// expression that yields one must not count as not set.
	Filled bool
	// Common means that every resource has it.
	Common bool
	// GoType is the field's type, pointers removed.
	GoType reflect.Type
	index  []int
}

// propertiesOf returns the properties of a spec, those of embedded structs first.
func propertiesOf(spec Spec) []Property {
	t := reflect.TypeOf(spec)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("a spec must be a pointer to a struct, not %T", spec))
	}

	fields := document.Fields(t.Elem())
	out := make([]Property, len(fields))
	for i, f := range fields {
		out[i] = propertyOf(f)
	}

	return out
}

// complete adds what the type knows about the common properties.
func (t *Type) complete(properties []Property) []Property {
	for i := range properties {
		switch p := &properties[i]; p.Key {
		case "ensure":
			p.Enum, p.Help, p.Default = t.Ensures, cmp.Or(t.EnsureHelp, p.Help), t.New().Meta().Ensure
			if len(t.Ensures) > 0 {
				p.Default = t.Ensures[0]
			}
		case "provider":
			p.Enum = t.Providers
		}
	}

	return properties
}

func propertyOf(f document.Field) Property {
	p := Property{Key: f.Key, Aliases: f.Aliases, Help: f.Tag.Get("jsonschema_description"), Sensitive: f.Tag.Get("sensitive") == "true", Filled: f.Tag.Get("filled") == "true", Common: f.Embedded, GoType: f.Type, index: f.Index}
	if p.GoType.Kind() == reflect.Pointer {
		p.GoType = p.GoType.Elem()
	}
	p.Enum, p.Default = Choices(f.Tag)

	return p
}

// Choices returns the values that the jsonschema tag of a field allows, none for
// any, and its default.
func Choices(tag reflect.StructTag) (enum []string, def string) {
	for part := range strings.SplitSeq(tag.Get("jsonschema"), ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "enum":
			enum = append(enum, value)
		case "default":
			def = value
		}
	}

	return enum, def
}

// Is reports whether a key means the property.
func (p *Property) Is(key string) bool { return p.Key == key || slices.Contains(p.Aliases, key) }

// Field returns the property's field of a spec.
func (p Property) Field(spec Spec) reflect.Value {
	return reflect.ValueOf(spec).Elem().FieldByIndex(p.index)
}

// Property returns a property of the type by its key or an alias.
func (t *Type) Property(key string) (Property, bool) {
	for i := range t.properties {
		if p := &t.properties[i]; p.Is(key) {
			return *p, true
		}
	}

	return Property{}, false
}

// UnknownProperty returns the problem of a key that is no property of the type.
func (t *Type) UnknownProperty(key string, pos model.Position) model.Problem {
	keys := make([]string, len(t.properties))
	for i := range t.properties {
		keys[i] = t.properties[i].Key
	}

	return document.Unknown(pos, "property", key, " of "+t.Name, keys)
}

// newOf returns a new T, a pointer to a struct.
func newOf[T any]() T {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		var zero T
		return zero
	}

	return reflect.New(t.Elem()).Interface().(T)
}
