package template

import "github.com/musterfleet/muster/model"

// Copy returns a copy of a value. leaf replaces every part that is neither a list nor a mapping.
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

// Reveal returns a tree in which text(secret) replaces each secret. It returns the same tree if it has no
// secrets.
func Reveal[T any](v any, text func(model.Secret) T) any {
	if !Holds(v) {
		return v
	}

	return Copy(v, func(v any) any {
		if secret, is := v.(model.Secret); is {
			return text(secret)
		}
		return v
	})
}
