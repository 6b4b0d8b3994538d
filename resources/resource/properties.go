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

// Property is one property of a type, read off its field: what manifests,
// command-line flags, schemas and documentation are derived from.
type Property struct {
	Key     string
	Aliases []string
	// Help is the field's jsonschema_description; of ensure what the type says of it.
	Help string
	// Enum and Default are from the field's jsonschema tag; those of ensure and
	// provider are the type's.
	Enum    []string
	Default string
	// Sensitive says, by the tag sensitive:"true", that its value is what the
	// resource's sensitive property is there to hide, wherever it turns up.
	Sensitive bool
	// Filled says, by the tag filled:"true", that it is not to be an empty text: what
	// came out empty of an expression must not count as not set.
	Filled bool
	// Common says that every resource has it.
	Common bool
	// GoType is the field's type, pointers removed.
	GoType reflect.Type
	index  []int
}

// propertiesOf reads the fields of a spec, embedded structs first.
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

// complete fills in what the type knows of the common properties.
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

// Choices gives the values that the jsonschema tag of a field allows, nothing
// where any is, and the default it names.
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

// Field gives the property's field of a spec.
func (p Property) Field(spec Spec) reflect.Value {
	return reflect.ValueOf(spec).Elem().FieldByIndex(p.index)
}

// Property finds a property of the type by its key or an alias.
func (t *Type) Property(key string) (Property, bool) {
	for _, p := range t.properties {
		if p.Key == key || slices.Contains(p.Aliases, key) {
			return p, true
		}
	}

	return Property{}, false
}

// UnknownProperty is the problem of a key that is no property of the type.
func (t *Type) UnknownProperty(key string, pos model.Position) model.Problem {
	keys := make([]string, len(t.properties))
	for i := range t.properties {
		keys[i] = t.properties[i].Key
	}

	return document.Unknown(pos, "property", key, " of "+t.Name, keys)
}

// newOf makes a T, which is a pointer to a struct.
func newOf[T any]() T {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		var zero T
		return zero
	}

	return reflect.New(t.Elem()).Interface().(T)
}
