package expression

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/musterfleet/muster/resources/document"
)

// ordered are the functions that list the content of a mapping. They replace the functions of the
// language, whose random order would change a rendered file in every run.
var ordered = []string{"keys", "values", "toPairs"}

// list returns a function that calls entry for each key and value, in the order of the keys.
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

// NotKnownHint suggests a key that resembles the first missing key.
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

// NameStep is a function that every iteration of a loop calls, because the language neither stops
// with a context nor limits loops.
const NameStep = "__step"

// guardLoops inserts the step into the bodies of loops.
type guardLoops struct{}

// Visit is called for every node, inner ones first.
func (guardLoops) Visit(node *ast.Node) {
	if body, ok := (*node).(*ast.PredicateNode); ok {
		body.Node = &ast.CallNode{Callee: &ast.IdentifierNode{Value: NameStep}, Arguments: []ast.Node{body.Node}}
	}
}

// Repeat is the builtin repeat with a limit on the size of its result.
func Repeat(s string, count int, limit int64) (string, error) {
	if count < 0 || int64(count) > limit || int64(len(s))*int64(count) > limit {
		return "", fmt.Errorf("repeat would exceed the limit of %d bytes", limit)
	}

	return strings.Repeat(s, count), nil
}
