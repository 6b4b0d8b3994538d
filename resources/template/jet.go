package template

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/CloudyKit/jet/v6"

	"github.com/musterfleet/muster/resources/document"
)

// The delimiters of Jet templates.
const (
	jetLeft  = "[["
	jetRight = "]]"
)

// Load reads a template that another template includes, imports or extends. The path begins with
// / and is clean. The path of the main template is / and its name.
type Load func(path string) (string, error)

// Jet renders a Jet template. Its actions are in [[ ]], and the results are not escaped for HTML. The
// names of values work with and without a dot. Without load there are no templates to include. Errors
// are *Error.
func Jet(ctx context.Context, t Template, names Names, load Load, limits Limits) (string, error) {
	r := &rendering{main: t, load: load, out: output{ctx: ctx, limits: limits}, texts: map[string]string{}, parsed: map[string]*jet.Template{}, functions: JetFunctions(names)}
	r.set = jet.NewSet(r, jet.WithSafeWriter(writer(limits.Print)), jet.WithDelims(t.left(), t.right()), jet.WithTemplateNameExtensions([]string{""}), jet.WithCache(r))
	for name, fn := range r.functions {
		r.set.AddGlobalFunc(name, fn)
	}
	r.set.AddGlobalFunc(nameInOrder, InOrder)
	if limits.Print != nil {
		addWriters(r.set, limits.Print)
	}
	values, variables := names.Values(), jet.VarMap{}
	for name, v := range values {
		variables.Set(name, v)
	}
	if err := cmp.Or(r.execute(variables, values), r.out.stopped); err != nil {
		return "", r.failed(err, names)
	}

	return r.out.text.String(), nil
}

func (t Template) left() string  { return cmp.Or(t.Left, jetLeft) }
func (t Template) right() string { return cmp.Or(t.Right, jetRight) }

// HasJetAction reports whether a text has an action in the delimiters of t.
func (t Template) HasJetAction(text string) bool { return strings.Contains(text, t.left()) }

// writer returns the function that Jet calls to write values, nil for the default.
func writer(print func(string) string, escapes ...jet.SafeWriter) jet.SafeWriter {
	if print == nil {
		return nil
	}

	return func(w io.Writer, b []byte) {
		for _, escape := range escapes {
			var escaped bytes.Buffer
			escape(&escaped, b)
			b = escaped.Bytes()
		}
		_, _ = io.WriteString(w, print(string(b)))
	}
}

func addWriters(set *jet.Set, print func(string) string) {
	set.AddGlobal("raw", writer(print)).AddGlobal("unsafe", writer(print))
	set.AddGlobal("safeHtml", writer(print, template.HTMLEscape)).AddGlobal("safeJs", writer(print, template.JSEscape))
	set.AddGlobal("writeJson", func(v any) (string, error) {
		text, err := json.Marshal(v)
		return string(text), err
	})
}

// rendering is one call of Jet: the loader and the cache of its templates.
type rendering struct {
	main      Template
	load      Load
	out       output
	set       *jet.Set
	functions map[string]jet.Func
	// failure is the error of a file that could not be loaded.
	failure error
	texts   map[string]string
	parsed  map[string]*jet.Template
}

func (r *rendering) path() string { return path.Join("/", r.main.Name) }

func (r *rendering) execute(variables jet.VarMap, dot any) (err error) {
	defer func() {
		// The library does not recover from all of its panics.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
			if e, is := p.(error); is {
				err = e
			}
		}
	}()
	t, err := r.set.GetTemplate(r.path())
	if err != nil {
		return err
	}

	return t.Execute(&r.out, variables, dot)
}

// Exists reports whether a template can be read.
func (r *rendering) Exists(name string) bool {
	if name == r.path() {
		return true
	}
	if r.load == nil {
		return false
	}
	_, err := r.text(name)
	if err != nil {
		r.failure = err
	}

	return err == nil
}

// Open returns a template's text.
func (r *rendering) Open(name string) (io.ReadCloser, error) {
	text, err := r.text(name)
	if err == nil {
		err = scan(Template{Name: r.name(name), Text: text}, r.main.left(), r.main.right(), true, r.out.limits.Judge)
	}

	return io.NopCloser(strings.NewReader(text)), err
}

func (r *rendering) text(name string) (text string, err error) {
	if name == r.path() {
		return r.main.Text, nil
	}
	text, have := r.texts[name]
	if !have {
		if text, err = r.load(name); err == nil {
			r.texts[name] = text
		}
	}

	return text, err
}

// Get returns a parsed template.
func (r *rendering) Get(name string) *jet.Template { return r.parsed[name] }

// Put stores a parsed template and adds its limits.
func (r *rendering) Put(name string, t *jet.Template) {
	r.guard(name, t.Root)
	r.parsed[name] = t
}

// unknownName matches an error of the library that quotes the values of all variables.
var unknownName = regexp.MustCompile(`identifier "(\w+)" not available`)

func (r *rendering) failed(err error, names Names) error {
	out := newError(r.path(), err)
	out.Pos.File = r.name(out.Pos.File)
	var null *nullError
	switch found := unknownName.FindStringSubmatch(out.Message); {
	case errors.As(err, &null):
		out.Message, out.Hint = null.Error(), null.jetHint()
	case r.out.stopped != nil:
		out.Message, out.Err = r.out.stopped.Error(), r.out.stopped
	case found != nil:
		out.Message, out.Hint = "unknown name `"+found[1]+"`", document.DidYouMean(found[1], slices.Sorted(maps.Keys(names)))
	case r.failure != nil && strings.Contains(out.Message, "could not be found"):
		out.Message, out.Err, out.Syntax = r.failure.Error(), r.failure, false
	}

	return out
}

// name returns the name of a template for positions. Included templates are beside the main template.
func (r *rendering) name(path string) string {
	if path == r.path() {
		return r.main.Name
	}
	if strings.HasPrefix(r.main.Name, "/") {
		return path
	}

	return strings.TrimPrefix(path, "/")
}

// JetFunctions returns the functions of names for Jet. An error of a function ends the rendering.
func JetFunctions(names Names) map[string]jet.Func {
	out := map[string]jet.Func{}
	// These replace functions of the library that have no limits.
	out["repeat"], out["replace"] = jetFunction("repeat", reflect.ValueOf(repeatText)), jetFunction("replace", reflect.ValueOf(replaceText))
	for name, fn := range names.Functions() {
		out[name] = jetFunction(name, reflect.ValueOf(fn))
	}

	return out
}

func jetFunction(name string, fn reflect.Value) jet.Func {
	return func(args jet.Arguments) reflect.Value {
		given := make([]reflect.Value, args.NumOfArguments())
		for i := range given {
			given[i] = args.Get(i)
		}
		in, err := arguments(name, fn.Type(), given)
		if err != nil {
			panic(err)
		}
		result, err := call(fn, in)
		if err != nil {
			panic(err)
		}
		if result == nil {
			// Jet would print <nil>.
			result = ""
		}

		return reflect.ValueOf(result)
	}
}

var errArguments = errors.New("wrong arguments")

// arguments converts the arguments of a call to the parameter types of a function.
func arguments(name string, t reflect.Type, args []reflect.Value) ([]reflect.Value, error) {
	n := len(args)
	if n < t.NumIn() && !(t.IsVariadic() && n == t.NumIn()-1) || n > t.NumIn() && !t.IsVariadic() {
		return nil, fmt.Errorf("%w: %s takes %d, not %d", errArguments, name, t.NumIn(), n)
	}
	out := make([]reflect.Value, n)
	for i := range n {
		want := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= t.NumIn()-1 {
			want = want.Elem()
		}
		v := args[i]
		if v.IsValid() && v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		switch {
		case !v.IsValid():
			v = reflect.Zero(want)
		case v.Type().AssignableTo(want):
		case v.CanFloat() && want.Kind() == reflect.Int:
			v = v.Convert(want)
		default:
			return nil, fmt.Errorf("%w: %s takes a %s as number %d, not a %s", errArguments, name, want, i+1, v.Type())
		}
		out[i] = v
	}

	return out, nil
}

// nameInOrder is the function that returns the operand of a range. The library returns the entries of
// a mapping in a random order.
const nameInOrder = "__in_order"

// InOrder returns a mapping as a ranger that sorts the keys, and other values unchanged.
func InOrder(args jet.Arguments) reflect.Value {
	of := args.Get(0)
	m := of
	for m.IsValid() && (m.Kind() == reflect.Interface || m.Kind() == reflect.Pointer) && !m.IsNil() {
		m = m.Elem()
	}
	if !m.IsValid() || m.Kind() != reflect.Map {
		return of
	}

	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		if a.CanInt() && b.CanInt() {
			return cmp.Compare(a.Int(), b.Int())
		}
		return cmp.Compare(fmt.Sprint(a.Interface()), fmt.Sprint(b.Interface()))
	})

	return reflect.ValueOf(&orderedRanger{m: m, keys: keys})
}

type orderedRanger struct {
	m    reflect.Value
	keys []reflect.Value
}

// ProvidesIndex reports whether there are keys beside the values.
func (*orderedRanger) ProvidesIndex() bool { return true }

// Range returns the next entry. It skips entries that were removed during the loop.
func (r *orderedRanger) Range() (key, value reflect.Value, end bool) {
	for len(r.keys) > 0 {
		key, r.keys = r.keys[0], r.keys[1:]
		if value = r.m.MapIndex(key); value.IsValid() {
			return key, value, false
		}
	}

	return key, value, true
}
