package document

import (
	"reflect"
	"slices"
	"strings"
)

// Field is a field of a struct that a document can set.
type Field struct {
	// Key is the name in its json tag. Aliases are the names in its alias tag.
	Key     string
	Aliases []string
	// Index is the argument of reflect.Value.FieldByIndex.
	Index []int
	// Common reports whether the field belongs to an embedded struct.
	Common bool
	Type   reflect.Type
	Tag    reflect.StructTag
}

// Is reports whether a key of a document names the field.
func (f Field) Is(key string) bool { return f.Key == key || slices.Contains(f.Aliases, key) }

// Fields returns the fields of a struct type, including fields of embedded structs.
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
