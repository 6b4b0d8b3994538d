package eval

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// Reveal returns a tree with the text that each of its secrets stands for: the
// Tree itself when it has none.
func Reveal(v any, text func(model.Secret) string) any {
	if !template.Holds(v) {
		return v
	}
	switch v := v.(type) {
	case model.Secret:
		return text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = Reveal(item, text)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = Reveal(item, text)
		}
		return out
	default:
		return v
	}
}

// markAll marks every scalar of v.
func markAll(v *resource.Value) {
	v.Secret = v.IsScalar()
	for i := range v.Items {
		markAll(&v.Items[i])
	}
	for i := range v.Entries {
		markAll(&v.Entries[i].Value)
	}
}
