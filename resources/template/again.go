package template

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"text/template"
)

// Again lets two renderings be compared: functions that give something else at
// every call (uuidv4, genPrivateKey …) give in the second what they gave in the
// first, where they are called with the same arguments as often. The zero value
// is before the first. It is used by one goroutine.
type Again struct {
	given  map[string][][]reflect.Value
	called map[string]int
}

// First begins a first rendering, and forgets what was before.
func (a *Again) First() { a.given, a.called = nil, nil }

// Second begins another one, which is to be compared with the first.
func (a *Again) Second() { a.called = nil }

// changing are the functions of sprig that give something else at every call, or
// look at the clock.
var changing = []string{
	"ago", "date", "date_in_zone", "dateInZone", "htmlDate", "htmlDateInZone", "now",
	"uuidv4", "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle",
	"bcrypt", "htpasswd", "encryptAES", "genPrivateKey",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
}

// wrap makes those of the functions remember what they give. A nil one leaves
// them as they are.
func (a *Again) wrap(functions template.FuncMap) template.FuncMap {
	if a == nil {
		return functions
	}
	for _, name := range changing {
		if fn := reflect.ValueOf(functions[name]); fn.IsValid() {
			functions[name] = reflect.MakeFunc(fn.Type(), func(args []reflect.Value) []reflect.Value { return a.call(name, fn, args) }).Interface()
		}
	}

	return functions
}

func (a *Again) call(name string, fn reflect.Value, args []reflect.Value) []reflect.Value {
	key := name
	for _, arg := range args {
		key += fmt.Sprintf("\x00%#v", arg.Interface())
	}
	if a.called == nil {
		a.called = map[string]int{}
	}
	at := a.called[key]
	a.called[key]++
	if at < len(a.given[key]) {
		return a.given[key][at]
	}
	call := fn.Call
	if fn.Type().IsVariadic() {
		call = fn.CallSlice
	}
	out := call(args)
	if a.given == nil {
		a.given = map[string][][]reflect.Value{}
	}
	a.given[key] = append(a.given[key], out)

	return out
}

// orderKeys makes the functions that list what is in a mapping give it in the
// order of the keys, the same every time.
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
