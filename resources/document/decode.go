package document

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Decoder decodes values into fields. It is strict and reports all problems. The zero value is
// ready to use.
type Decoder struct {
	Problems model.Problems
	// Secrets are the decoded secret values.
	Secrets []model.Secret
	// Positions are the positions of the values by path (nats.servers.0).
	Positions map[string]model.Position
}

// ValueUnmarshaler is a field that reads a value of any kind.
type ValueUnmarshaler interface{ UnmarshalValue(Value) }

// Place records the position of the value at a path.
func (d *Decoder) Place(path string, pos model.Position) {
	if d.Positions == nil {
		d.Positions = map[string]model.Position{}
	}
	d.Positions[path] = pos
}

// Document decodes a document into a struct, by the json and alias tags of its fields. It keeps the
// values of fields that are not given.
func (d *Decoder) Document(v Value, target any) {
	switch v.Kind {
	case Map:
		d.structure(reflect.ValueOf(target).Elem(), "", v)
	case Null:
	default:
		d.Problems.Add(v.Pos, "", "the document must be a mapping, not %s", v.Kind)
	}
}

// Into decodes v into a field. key is its name. Null keeps the value of the field.
func (d *Decoder) Into(f reflect.Value, key string, v Value) {
	if v.Kind == Null {
		return
	}
	if f.Kind() == reflect.Interface {
		f.Set(reflect.ValueOf(v.PlainWith(d.reveal)))
		return
	}
	if own, ok := f.Addr().Interface().(ValueUnmarshaler); ok {
		v.EachScalar(func(s *Value) {
			if s.Secret && len(s.Text) > 0 {
				d.reveal(s.AsSecret())
			}
		})
		own.UnmarshalValue(v)
		return
	}
	if v.Secret && len(v.Text) > 0 {
		d.reveal(v.AsSecret())
	}
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	if text, ok := f.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(text, key, v)
		return
	}
	switch f.Kind() {
	case reflect.Slice:
		d.list(f, key, v)
	case reflect.Map:
		d.mapping(f, key, v)
	case reflect.Struct:
		if v.Kind != Map {
			d.mismatch(key, "a mapping", v)
			return
		}
		d.structure(f, key, v)
	default:
		d.scalar(f, key, v)
	}
}

func (d *Decoder) text(f encoding.TextUnmarshaler, key string, v Value) {
	if !v.IsScalar() {
		d.mismatch(key, "a string", v)
		return
	}
	if err := f.UnmarshalText([]byte(v.Text)); err != nil {
		d.misread(key, v, "", "`%s`: %s", key, shown(v, err.Error()))
	}
}

func (d *Decoder) scalar(f reflect.Value, key string, v Value) {
	switch {
	case !v.IsScalar():
		d.mismatch(key, kindName(f.Kind()), v)
	case f.Kind() == reflect.String:
		f.SetString(v.Text)
	case f.Kind() == reflect.Bool:
		b, ok := ParseBool(v.Text)
		if !ok {
			d.mismatch(key, "true or false", v)
		}
		f.SetBool(b)
	case f.CanInt():
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if err != nil || f.OverflowInt(n) {
			d.mismatch(key, "a whole number", v)
			return
		}
		f.SetInt(n)
	default:
		panic("unsupported kind " + f.Kind().String() + " of " + key)
	}
}

func (d *Decoder) list(f reflect.Value, key string, v Value) {
	if v.Kind != List {
		hint := ""
		switch {
		case v.IsScalar():
			hint = "write it as a list: [" + shown(v, v.Text) + "]"
		case key == "environment" && len(v.Entries) > 0: // the values may be secret
			hint = `write it as a list: ["` + v.Entries[0].Key + `=VALUE"]`
		}
		d.misread(key, v, hint, "`%s` must be a list, not %s", key, v.Kind)
		return
	}
	out := reflect.MakeSlice(f.Type(), len(v.Items), len(v.Items))
	for i, item := range v.Items {
		path := key + "." + strconv.Itoa(i)
		d.Place(path, item.Pos)
		switch item.Kind {
		case Null:
			d.mismatch(key, "a list without empty items", item)
		case Map:
			d.Into(out.Index(i), path, item)
		case List:
			d.misread(key, item, "make one list, in an expression with concat()", "an item of `%s` is a list", key)
		default:
			d.Into(out.Index(i), key, item)
		}
	}
	f.Set(out)
}

func (d *Decoder) mapping(f reflect.Value, key string, v Value) {
	if v.Kind != Map {
		d.mismatch(key, "a mapping", v)
		return
	}
	out := reflect.MakeMapWithSize(f.Type(), len(v.Entries))
	for _, e := range v.Entries {
		d.Place(key+"."+e.Key, e.Pos)
		item := reflect.New(f.Type().Elem()).Elem()
		d.Into(item, key+"."+e.Key, e.Value)
		out.SetMapIndex(reflect.ValueOf(e.Key), item)
	}
	f.Set(out)
}

// structure decodes a mapping into a struct. key is empty for the document.
func (d *Decoder) structure(f reflect.Value, key string, v Value) {
	fields := Fields(f.Type())
	where, prefix := "", ""
	if key != "" {
		where, prefix = " in `"+key+"`", key+"."
	}
	for _, e := range v.Entries {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Is(e.Key) })
		if i < 0 {
			d.Problems.AddMade(func() model.Problem { return Unknown(e.Pos, "key", e.Key, where, keysOf(fields)) })
			continue
		}
		d.Place(prefix+fields[i].Key, e.Value.Pos)
		d.Into(f.FieldByIndex(fields[i].Index), prefix+e.Key, e.Value)
	}
}

func (d *Decoder) reveal(s model.Secret) any {
	d.Secrets = append(d.Secrets, s)

	return s.Reveal()
}

func (d *Decoder) mismatch(key, want string, v Value) {
	got := v.Kind.String()
	if v.IsScalar() {
		got = strconv.Quote(shown(v, v.Text))
	}
	d.misread(key, v, "", "`%s` must be %s, not %s", key, want, got)
}

func (d *Decoder) misread(key string, v Value, hint, format string, args ...any) {
	d.Problems.Add(v.Pos, hint, format, args...)
	d.Problems[len(d.Problems)-1].Property = key
}

func shown(v Value, text string) string {
	if v.Secret {
		return model.Redacted
	}

	return text
}

func kindName(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	default:
		return "a whole number"
	}
}

// DecodeInto decodes a document of at most max bytes into target, a pointer to a struct, by its
// json tags. It returns the position of each value by path (nats.servers), and all problems.
func DecodeInto(name string, data []byte, max int64, target any) (map[string]model.Position, model.Problems) {
	root, problems := Read(name, data, max)
	d := Decoder{Problems: problems}
	d.Document(root, target)

	return d.Positions, d.Problems
}

// Field is a field of a struct that a document can set.
type Field struct {
	// Key is the name in its json tag. Aliases are the names in its alias tag.
	Key     string
	Aliases []string
	// Index is the argument of reflect.Value.FieldByIndex.
	Index []int
	// Common reports whether the field belongs to model.Common.
	Common bool
	Type   reflect.Type
	Tag    reflect.StructTag
}

// Is reports whether a key of a document names the field.
func (f Field) Is(key string) bool { return f.Key == key || slices.Contains(f.Aliases, key) }

// Fields returns the fields of a struct type, including fields of embedded structs.
func Fields(t reflect.Type) []Field {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				inner.Common = inner.Common || f.Type == reflect.TypeFor[model.Common]()
				out = append(out, inner)
			}
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || key == "" || key == "-" {
			continue
		}
		field := Field{Key: key, Index: []int{i}, Type: f.Type, Tag: f.Tag}
		if alias := f.Tag.Get("alias"); alias != "" {
			field.Aliases = strings.Split(alias, ",")
		}
		out = append(out, field)
	}

	return out
}

func keysOf(fields []Field) []string {
	keys := make([]string, len(fields))
	for i := range fields {
		keys[i] = fields[i].Key
	}

	return keys
}
