package expression

import "strconv"

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

// Find follows a path of keys and list positions.
func Find(at any, path []string) (any, bool) {
	for _, word := range path {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[word]
			if !ok {
				return nil, false
			}
			at = next
		case []any:
			i, err := strconv.Atoi(word)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}

	return at, true
}
