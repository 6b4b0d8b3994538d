package scaffold

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/resources/template"
)

// encode returns a value in a form that survives JSON; decode reverses it. Values are null, basic types,
// times, lists and mappings with text as keys. JSON preserves neither the types of numbers and times nor
// bytes that are not UTF-8, so encode writes them as text. The first letter of a text is the type of its value.
func encode(v any) (any, error) {
	if at, is := v.(time.Time); is {
		return "t" + at.Format(time.RFC3339Nano), nil
	}
	var err error
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case !r.IsValid(), kind == reflect.Pointer && r.IsNil():
		return nil, nil
	case kind == reflect.Pointer:
		return encode(r.Elem().Interface())
	case kind == reflect.Bool:
		return r.Bool(), nil
	case r.CanInt():
		return "i" + strconv.FormatInt(r.Int(), 10), nil
	case r.CanUint():
		return "i" + strconv.FormatUint(r.Uint(), 10), nil
	case r.CanFloat():
		return "f" + strconv.FormatFloat(r.Float(), 'g', -1, 64), nil
	case kind == reflect.String && utf8.ValidString(r.String()):
		return "s" + r.String(), nil
	case kind == reflect.String:
		return "b" + base64.StdEncoding.EncodeToString([]byte(r.String())), nil
	case kind == reflect.Slice || kind == reflect.Array:
		out := make([]any, r.Len())
		for i := 0; i < len(out) && err == nil; i++ {
			out[i], err = encode(r.Index(i).Interface())
		}
		return out, err
	case kind == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, r.Len())
		for all := r.MapRange(); err == nil && all.Next(); {
			out[all.Key().String()], err = encode(all.Value().Interface())
		}
		return out, err
	default:
		return nil, fmt.Errorf("a %T cannot be a value or an argument of templates", v)
	}
}

// decode returns a new copy of an encoded value.
func decode(v any) any { return template.Copy(v, decodeText) }

func decodeText(v any) any {
	text, is := v.(string)
	if !is || text == "" {
		return v
	}
	switch text = text[1:]; v.(string)[0] {
	case 'i':
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		n, _ := strconv.ParseUint(text, 10, 64)
		return n
	case 'f':
		n, _ := strconv.ParseFloat(text, 64)
		return n
	case 't':
		at, _ := time.Parse(time.RFC3339Nano, text)
		return at
	case 'b':
		raw, _ := base64.StdEncoding.DecodeString(text)
		return string(raw)
	default:
		return text
	}
}
