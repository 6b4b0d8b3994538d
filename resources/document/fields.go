package document

import (
	"reflect"
	"slices"
	"strings"
)

// Field is a field of a struct that documents can fill.
type Field struct {
	// Key is the name of its json tag, Aliases those of its alias tag.
	Key     string
	Aliases []string
	// Index is what reflect.Value.FieldByIndex takes.
	Index []int
	// Common reports whether it is of an embedded struct, as what many structs have.
	Common bool
	Type   reflect.Type
	Tag    reflect.StructTag
}

// Is reports whether a key of a document means the field.
func (f Field) Is(key string) bool { return f.Key == key || slices.Contains(f.Aliases, key) }

// Fields returns the fields of a struct type, those of embedded structs in their place.
func Fields(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			for _, inner := range Fields(f.Type) {
				inner.Index, inner.Common = append([]int{i}, inner.Index...), true
				out = append(out, inner)
			}
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || key == "" || key == "-" {
			continue
		}
		field := Field{Key: key, Index: []int{i}, Type: f.Type, Tag: f.Tag}
		if alias := f.Tag.Get("alias"); alias != "" {
			field.Aliases = strings.Split(alias, ",")
		}
		out = append(out, field)
	}

	return out
}

func keysOf(fields []Field) []string {
	keys := make([]string, len(fields))
	for i := range fields {
		keys[i] = fields[i].Key
	}

	return keys
}
