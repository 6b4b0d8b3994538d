package eval

import (
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// Reveal returns a tree with the text that each of its secrets stands for: the
// tree itself when it has none.
func Reveal(v any, text func(model.Secret) string) any {
	if !template.Holds(v) {
		return v
	}

	return Copy(v, func(v any) any {
		if secret, is := v.(model.Secret); is {
			return text(secret)
		}
		return v
	})
}

// Copy returns a tree of its own, with what leaf makes of all that is no mapping or list.
func Copy(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = Copy(v[key], leaf)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = Copy(v[i], leaf)
		}
		return out
	default:
		return leaf(v)
	}
}

// cloned returns a tree that a template may change, which is nothing to others.
func cloned(v any) any { return Copy(v, func(leaf any) any { return leaf }) }

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
