package scaffold

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode/utf8"
)

// The tags of values that JSON does not preserve. encode replaces such values by a mapping with
// the tag as the only key.
const (
	tagMapping = "m"
	tagInteger = "i"
	tagFloat   = "f"
	tagBytes   = "b" // text that is not UTF-8
	tagTime    = "t"
)

// encode returns a value in a form that survives JSON; decode reverses it. Values are null, basic
// types, times, lists and mappings with text as keys.
func encode(v any) (any, error) {
	if at, is := v.(time.Time); is {
		return map[string]any{tagTime: at.Format(time.RFC3339Nano)}, nil
	}
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case !r.IsValid(), kind == reflect.Pointer && r.IsNil():
		return nil, nil
	case kind == reflect.Pointer:
		return encode(r.Elem().Interface())
	case kind == reflect.Bool:
		return r.Bool(), nil
	case r.CanInt():
		return map[string]any{tagInteger: strconv.FormatInt(r.Int(), 10)}, nil
	case r.CanUint():
		return map[string]any{tagInteger: strconv.FormatUint(r.Uint(), 10)}, nil
	case r.CanFloat():
		return map[string]any{tagFloat: strconv.FormatFloat(r.Float(), 'g', -1, 64)}, nil
	case kind == reflect.String && utf8.ValidString(r.String()):
		return r.String(), nil
	case kind == reflect.String:
		return map[string]any{tagBytes: base64.StdEncoding.EncodeToString([]byte(r.String()))}, nil
	case kind == reflect.Slice || kind == reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			var err error
			if out[i], err = encode(r.Index(i).Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	case kind == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, r.Len())
		for all := r.MapRange(); all.Next(); {
			var err error
			if out[all.Key().String()], err = encode(all.Value().Interface()); err != nil {
				return nil, err
			}
		}
		return map[string]any{tagMapping: out}, nil
	default:
		return nil, fmt.Errorf("a %T cannot be a value or an argument of templates", v)
	}
}

// decode returns a new copy of an encoded value.
func decode(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = decode(v[i])
		}
		return out
	case map[string]any:
		for tag, of := range v {
			return decodeTagged(tag, of)
		}
	}

	return v
}

func decodeTagged(tag string, v any) any {
	if tag == tagMapping {
		all, _ := v.(map[string]any)
		out := make(map[string]any, len(all))
		for key := range all {
			out[key] = decode(all[key])
		}
		return out
	}
	text, _ := v.(string)
	switch tag {
	case tagInteger:
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		n, _ := strconv.ParseUint(text, 10, 64)
		return n
	case tagFloat:
		n, _ := strconv.ParseFloat(text, 64)
		return n
	case tagTime:
		at, _ := time.Parse(time.RFC3339Nano, text)
		return at
	default:
		raw, _ := base64.StdEncoding.DecodeString(text)
		return string(raw)
	}
}
