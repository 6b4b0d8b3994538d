package expression

import "strconv"

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
