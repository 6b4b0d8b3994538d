package template

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// The limits for the result of one call.
const (
	maxText  = 16 << 20
	maxItems = 1_000_000
	// maxVerbs is the maximum number of % in a format.
	maxVerbs = 1000
)

// errFar means that the result of a function would exceed the limits.
var errFar = errors.New("it would make more than is allowed")

// errItself means that a mapping would contain itself, so printing it would not end.
var errItself = errors.New("a mapping cannot hold itself")

// sprigFunctions returns the functions of sprig, without getHostByName, which uses the network. It
// limits functions whose arguments set the size of their results.
func sprigFunctions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	delete(functions, "getHostByName")
	// These functions make an indent for each line of the text.
	limit(functions, func(a []reflect.Value) error { return tooLong(int(a[0].Int()), a[1].Len()) }, "repeat", "indent", "nindent")
	limit(functions, func(a []reflect.Value) error { return tooMany(0, 1, a[0].Int()) }, "randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "until")
	limit(functions, func(a []reflect.Value) error { return tooMany(a[0].Int(), a[2].Int(), a[1].Int()) }, "untilStep")
	limit(functions, tooManyOfSeq, "seq")
	limit(functions, tooLongJoined, "join")
	limit(functions, func(a []reflect.Value) error { return checkHolder(a[0], a[2]) }, "set")
	limit(functions, func(a []reflect.Value) error { return checkHolder(a[0], a[1]) }, "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite")
	functions["replace"] = func(old, with, text string) (string, error) { return replaceText(text, old, with, -1) }
	functions["printf"] = printf
	addPrinters(functions)
	orderKeys(functions)

	return functions
}

// limit wraps functions: they return the error of refuse for their arguments, if there is one.
func limit(functions template.FuncMap, refuse func(args []reflect.Value) error, names ...string) {
	for _, name := range names {
		f := reflect.ValueOf(functions[name])
		t := f.Type()
		var in []reflect.Type
		for i := range t.NumIn() {
			in = append(in, t.In(i))
		}
		call := f.Call
		if t.IsVariadic() {
			call = f.CallSlice
		}
		limited := reflect.FuncOf(in, []reflect.Type{t.Out(0), reflect.TypeFor[error]()}, t.IsVariadic())
		functions[name] = reflect.MakeFunc(limited, func(args []reflect.Value) []reflect.Value {
			out, err := []reflect.Value{reflect.Zero(t.Out(0))}, refuse(args)
			if err == nil {
				out = call(args)
			}
			return append(out, reflect.ValueOf(&err).Elem())[:2]
		}).Interface()
	}
}

// tooLong returns an error for a text of count pieces of a size.
func tooLong(count, size int) error {
	if count > 0 && max(1, size) > maxText/count {
		return errFar
	}

	return nil
}

func repeatText(text string, count int) (string, error) {
	if count < 0 || tooLong(count, len(text)) != nil {
		return "", errFar
	}

	return strings.Repeat(text, count), nil
}

func replaceText(text, old, with string, count int) (string, error) {
	found := strings.Count(text, old)
	if count >= 0 {
		found = min(found, count)
	}
	if err := tooLong(found, len(with)); err != nil {
		return "", err
	}

	return strings.Replace(text, old, with, count), nil
}

func tooLongJoined(args []reflect.Value) error {
	separator, list := args[0].Len(), args[1].Elem()
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		return nil
	}

	return tooLong(list.Len(), separator)
}

var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*([0-9]{5,}|\*)`)

func printf(format string, args ...any) (string, error) {
	if err := checkNull("printf", args); err != nil && !strings.Contains(format, "%T") {
		return "", err
	}
	if strings.Count(format, "%") > maxVerbs || wideVerb.MatchString(format) {
		return "", errFar
	}

	return fmt.Sprintf(format, args...), nil
}

// checkHolder returns an error if a value for a mapping contains that mapping.
func checkHolder(d, v reflect.Value) error {
	if d, _ := d.Interface().(map[string]any); holds(v.Interface(), d) {
		return errItself
	}

	return nil
}

func holds(v any, d map[string]any) bool {
	switch v := v.(type) {
	case map[string]any:
		if reflect.ValueOf(v).Pointer() == reflect.ValueOf(d).Pointer() {
			return true
		}
		for _, each := range v {
			if holds(each, d) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(each any) bool { return holds(each, d) })
	case []map[string]any:
		return slices.ContainsFunc(v, func(each map[string]any) bool { return holds(each, d) })
	}

	return false
}

// tooManyOfSeq returns an error for arguments of seq: an end, a start and an end, or with a step between.
func tooManyOfSeq(args []reflect.Value) error {
	params, _ := args[0].Interface().([]int)
	switch len(params) {
	case 1:
		return tooMany(1, 1, int64(params[0]))
	case 2:
		return tooMany(int64(params[0]), 1, int64(params[1]))
	case 3:
		return tooMany(int64(params[0]), int64(params[1]), int64(params[2]))
	default:
		return nil
	}
}

// tooMany returns an error for more steps between two numbers than a list may have.
func tooMany(from, step, to int64) error {
	distance := float64(to) - float64(from)
	if step != 0 {
		distance /= float64(step)
	}
	if distance > maxItems || distance < -maxItems {
		return errFar
	}

	return nil
}

// orderKeys replaces the functions that list a mapping by functions that sort the keys.
func orderKeys(functions template.FuncMap) {
	functions["keys"] = func(all ...map[string]any) []string {
		var out []string
		for _, m := range all {
			out = append(out, slices.Sorted(maps.Keys(m))...)
		}
		return out
	}
	functions["values"] = func(m map[string]any) []any {
		out := make([]any, 0, len(m))
		for _, key := range slices.Sorted(maps.Keys(m)) {
			out = append(out, m[key])
		}
		return out
	}
}
