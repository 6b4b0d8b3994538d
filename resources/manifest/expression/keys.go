package expression

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/document"
)

// ordered are the functions that list what is in a mapping. They replace
// those of the language, which list it in another order every time: a file made
// of that would change in every run.
var ordered = []string{"keys", "values", "toPairs"}

// list makes the function of a name, which returns what entry makes of each key
// and value, in the order of the keys.
func list(name string, entry func(key, value any) any) func(any) (any, error) {
	return func(of any) (any, error) {
		m := reflect.ValueOf(of)
		if m.Kind() != reflect.Map {
			return nil, fmt.Errorf("%s takes a mapping, not %s", name, KindOf(of))
		}
		keys := m.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			return strings.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
		})
		out := make([]any, len(keys))
		for i, key := range keys {
			out[i] = entry(key.Interface(), m.MapIndex(key).Interface())
		}
		return out, nil
	}
}

// AddOrdered adds the functions of ordered.
func AddOrdered(n map[string]any) {
	n["keys"] = list("keys", func(key, _ any) any { return key })
	n["values"] = list("values", func(_, value any) any { return value })
	n["toPairs"] = list("toPairs", func(key, value any) any { return []any{key, value} })
}

// NotKnownHint names a key that is near the first one that is missing.
func NotKnownHint(root any, name, rest string) string {
	at, path := root, name
	for word := range strings.SplitSeq(rest, ".") {
		next, ok := Find(at, []string{word})
		if m, is := at.(map[string]any); is && !ok {
			if near := document.Nearest(word, KeysOf(m)); near != "" {
				return "did you mean `" + path + "." + near + "`?"
			}
		}
		if !ok {
			break
		}
		at, path = next, path+"."+word
	}

	return "give lookup a default as its second argument where it may be missing"
}
