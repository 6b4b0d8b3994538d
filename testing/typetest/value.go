package typetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterfleet/muster/resources/document"
)

// Properties are the properties of a resource as a test writes them: nil, bool,
// string, numbers, []any, []string, map[string]any and Properties themselves.
type Properties map[string]any

// Value makes of properties what the manifest's reader would. Keys are sorted.
func Value(v any) document.Value {
	switch v := v.(type) {
	case nil:
		return document.Value{Kind: document.Null}
	case bool:
		return document.Value{Kind: document.Bool, Text: fmt.Sprint(v)}
	case string:
		return document.Value{Kind: document.String, Text: v}
	case []string:
		return list(v)
	case []int:
		return list(v)
	case []any:
		return list(v)
	case map[string]any:
		return Value(Properties(v))
	case Properties:
		out := document.Value{Kind: document.Map}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.Entries = append(out.Entries, document.Entry{Key: key, Value: Value(v[key])})
		}
		return out
	default:
		return document.Value{Kind: document.Number, Text: fmt.Sprint(v)}
	}
}

func list[T any](items []T) document.Value {
	out := document.Value{Kind: document.List}
	for _, item := range items {
		out.Items = append(out.Items, Value(item))
	}

	return out
}
