package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/musterfleet/muster/model"
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

// maxQuoted is the longest part of an expression that an error quotes.
const maxQuoted = 60

// misread returns the error of reading a key that a value does not have, and the node that reads it.
// It returns nil for any other error.
func (p *Program) misread(err error) (at *file.Error, member *ast.MemberNode) {
	if !errors.As(err, &at) || !slices.ContainsFunc([]string{"cannot fetch ", "invalid operation: int(", "reflect.Value.MapIndex: "}, func(prefix string) bool {
		return strings.HasPrefix(at.Message, prefix)
	}) {
		return nil, nil
	}
	member, _ = ast.Find(p.Node(), func(n ast.Node) bool {
		member, is := n.(*ast.MemberNode)
		return is && member.Location() == at.Location
	}).(*ast.MemberNode)

	return at, member
}

// Misread explains the error of reading a key of a value that has no such keys: a key of a text, a
// number or a list, or a position of a mapping. is is false for any other error.
func (p *Program) Misread(err error, vars map[string]any) (message, hint string, is bool) {
	at, member := p.misread(err)
	if member == nil {
		return "", "", false
	}
	of, key := quoted(member.Node), keyOf(member)
	c := follow(member.Node, vars)
	switch {
	case strings.HasSuffix(at.Message, " from <nil>"):
		return of + " is not set", "write `?." + key + "` where it may be unset", true
	case c.path == "":
		return of + " has no key `" + key + "`", "", true
	}
	message = fmt.Sprintf("%s is %s and has no key `%s`", of, KindOf(c.value), key)
	switch v := c.value.(type) {
	case []any:
		hint = "read an item, such as `" + c.path + "[0]`"
	case map[string]any:
		if keys := KeysOf(v); len(keys) > 0 {
			hint = "read a key, such as `" + c.path + "." + keys[0] + "`"
		}
	default:
		hint = "write `" + c.path + "` for its value"
	}

	return message, hint, true
}

// keyOf returns the key or the position in brackets that a node reads.
func keyOf(member *ast.MemberNode) string {
	if name, is := member.Property.(*ast.StringNode); is {
		return name.Value
	}

	return "[" + member.Property.String() + "]"
}

func quoted(node ast.Node) string {
	text := node.String()
	if len(text) > maxQuoted {
		return "the value"
	}

	return "`" + text + "`"
}

// ToValue converts the result of an expression. The entries of a mapping are sorted by key, so that
// the result is deterministic.
func ToValue(v any, pos model.Position) (document.Value, error) {
	out := document.Value{Pos: pos}
	switch v := v.(type) {
	case nil:
		return out, nil
	case string:
		out.Kind, out.Text = document.String, v
		return out, nil
	case bool:
		out.Kind, out.Text = document.Bool, strconv.FormatBool(v)
		return out, nil
	case model.Secret:
		out.Kind, out.Text, out.Secret, out.Derived = document.String, v.Reveal(), true, v.IsDerived()
		return out, nil
	case json.Number:
		out.Kind, out.Text = document.Number, v.String()
		return out, nil
	case time.Time:
		// Remove the monotonic clock reading.
		out.Kind, out.Text = document.String, v.Round(0).String()
		return out, nil
	case fmt.Stringer:
		out.Kind, out.Text = document.String, v.String()
		return out, nil
	}

	return toReflected(reflect.ValueOf(v), out)
}

func toReflected(v reflect.Value, out document.Value) (document.Value, error) {
	switch kind := v.Kind(); {
	case v.CanInt():
		out.Kind, out.Text = document.Number, strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		out.Kind, out.Text = document.Number, strconv.FormatUint(v.Uint(), 10)
	case v.CanFloat():
		if math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0) {
			return out, fmt.Errorf("gives %v, which a document cannot contain", v.Float())
		}
		text, err := json.Marshal(v.Float())
		out.Kind, out.Text = document.Number, string(text)
		return out, err
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		out.Kind, out.Text = document.String, string(v.Bytes())
	case kind == reflect.Slice, kind == reflect.Array:
		return toList(v, out)
	case kind == reflect.Map:
		return toMap(v, out)
	case kind == reflect.Pointer, kind == reflect.Interface:
		if v.IsNil() {
			return out, nil
		}
		return ToValue(v.Elem().Interface(), out.Pos)
	case kind == reflect.Func:
		return out, errors.New("gives a function, which a document cannot contain")
	default:
		return out, fmt.Errorf("gives a %s, which a document cannot contain", v.Type())
	}

	return out, nil
}

func toList(v reflect.Value, out document.Value) (document.Value, error) {
	out.Kind = document.List
	for i := range v.Len() {
		item, err := ToValue(v.Index(i).Interface(), out.Pos)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, item)
	}

	return out, nil
}

func toMap(v reflect.Value, out document.Value) (document.Value, error) {
	out.Kind = document.Map
	for _, k := range v.MapKeys() {
		item, err := ToValue(v.MapIndex(k).Interface(), out.Pos)
		if err != nil {
			return out, err
		}
		out.Entries = append(out.Entries, document.Entry{Key: fmt.Sprint(k.Interface()), Pos: out.Pos, Value: item})
	}
	slices.SortFunc(out.Entries, func(a, b document.Entry) int { return strings.Compare(a.Key, b.Key) })

	return out, nil
}

// KindOf returns the kind of a result as users know it.
func KindOf(v any) string {
	if _, ok := v.(time.Duration); ok {
		return "a duration"
	}
	value, err := ToValue(v, model.Position{})
	if err != nil {
		return "something else"
	}

	return value.Kind.String()
}
