package typetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/resources/resource"
)

// Properties are the properties of a resource as a test writes them: nil, bool,
// string, numbers, []any, []string, map[string]any and Properties themselves.
type Properties map[string]any

// Value makes of properties what the manifest's reader would. Keys are sorted.
func Value(v any) resource.Value {
	switch v := v.(type) {
	case nil:
		return resource.Value{Kind: resource.Null}
	case bool:
		return resource.Value{Kind: resource.Bool, Text: fmt.Sprint(v)}
	case string:
		return resource.Value{Kind: resource.String, Text: v}
	case []string:
		return list(v)
	case []int:
		return list(v)
	case []any:
		return list(v)
	case map[string]any:
		return Value(Properties(v))
	case Properties:
		out := resource.Value{Kind: resource.Map}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.Entries = append(out.Entries, resource.Entry{Key: key, Value: Value(v[key])})
		}
		return out
	default:
		return resource.Value{Kind: resource.Number, Text: fmt.Sprint(v)}
	}
}

func list[T any](items []T) resource.Value {
	out := resource.Value{Kind: resource.List}
	for _, item := range items {
		out.Items = append(out.Items, Value(item))
	}

	return out
}
