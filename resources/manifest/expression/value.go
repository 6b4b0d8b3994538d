package expression

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

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
	default:
		return out, fmt.Errorf("gives %s, which a document cannot contain", wordFor(v.Type()))
	}

	return out, nil
}

func wordFor(t reflect.Type) string {
	if t.Kind() == reflect.Func {
		return "a function"
	}

	return "a " + t.String()
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
