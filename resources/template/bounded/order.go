package bounded

import (
	"maps"
	"slices"
	"text/template"
)

// orderKeys makes the functions that list a mapping return it in the
// order of the keys, the same every time.
func orderKeys(functions template.FuncMap) {
	functions["keys"] = func(all ...map[string]any) []string {
		var out []string
		for _, m := range all {
			out = append(out, slices.Sorted(maps.Keys(m))...)
		}
		return out
	}
	functions["values"] = func(m map[string]any) []any {
		out := make([]any, 0, len(m))
		for _, key := range slices.Sorted(maps.Keys(m)) {
			out = append(out, m[key])
		}
		return out
	}
}
