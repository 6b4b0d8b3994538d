package resource

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Decode makes the resource that a mapping of properties describes. It is
// strict, and reports every problem at once, each at its place; the resource
// is nil when there is any. pos is where the resource is declared.
func Decode(t *Type, properties Value, pos model.Position) (*Resource, model.Problems) {
	d := decoder{}
	spec := t.New()
	target := reflect.ValueOf(spec).Elem()
	places := map[string]model.Position{}
	late := false
	if properties.Kind != Map && properties.Kind != Null {
		d.problems.Add(properties.Pos, "write its properties as key: value", "%s must be a mapping, not %s", t.Name, properties.Kind)
	}
	for _, e := range properties.Entries {
		p, known := t.Property(e.Key)
		switch first, twice := places[p.Key]; {
		case !known:
			d.problems = append(d.problems, t.UnknownProperty(e.Key, e.Pos))
			continue
		case twice:
			d.problems.Add(e.Pos, "keep one of them", "`%s` is set twice, first at %s", p.Key, first)
			continue
		}
		places[p.Key] = e.Value.Pos
		if e.Value.IsLate() {
			late = true
			if p.Common {
				d.problems.Add(e.Value.Pos, "use outputs in the type's own properties", "`%s` must be known before the run", e.Key)
			}
			continue
		}
		d.into(target.FieldByIndex(p.index), e.Key, e.Value)
	}
	r := &Resource{Type: t, Spec: spec, Pos: pos, Secrets: d.secrets}
	if len(d.secrets) > 0 {
		r.Meta().Sensitive = true
	}
	d.problems = append(d.problems, checkCommon(r, late)...)
	d.place(places, pos)
	if len(d.problems) > 0 {
		return nil, d.redacted(r, properties)
	}

	return r, nil
}

// redacted gives the problems without the secrets of the resource, and without
// the values of one that is marked sensitive: what is wrong with a value is told
// by quoting it.
func (d *decoder) redacted(r *Resource, properties Value) model.Problems {
	secrets := d.secrets
	if r.Meta().Sensitive {
		for _, e := range properties.Entries {
			if p, known := r.Type.Property(e.Key); known && !p.Common {
				collectTexts(e.Value, &secrets)
			}
		}
	}
	redactor := model.NewRedactor(secrets...)
	for i := range d.problems {
		p := &d.problems[i]
		p.Message, p.Hint = redactor.Redact(p.Message), redactor.Redact(p.Hint)
	}

	return d.problems
}

func collectTexts(v Value, out *[]model.Secret) {
	if v.IsScalar() {
		*out = append(*out, model.NewSecret(v.Text))
	}
	for _, item := range v.Items {
		collectTexts(item, out)
	}
	for _, e := range v.Entries {
		collectTexts(e.Value, out)
	}
}

// DecodeQuestion is Decode for a resource that is only asked about: what is not
// given is not missed.
func DecodeQuestion(t *Type, properties Value, pos model.Position) (*Resource, model.Problems) {
	r, problems := Decode(t, properties, pos)
	given := model.Problems{}
	for _, p := range problems {
		if _, set := properties.Get(p.Property); set || p.Property == "" || p.Property == "name" {
			given = append(given, p)
		}
	}
	if r != nil || len(given) > 0 {
		return r, given
	}
	d := decoder{}
	spec := t.New()
	for _, e := range properties.Entries {
		if p, known := t.Property(e.Key); known {
			d.into(p.Field(spec), e.Key, e.Value)
		}
	}

	return &Resource{Type: t, Spec: spec, Pos: pos, Secrets: d.secrets}, nil
}

// IsLate says that the value, or any within it, is known only later.
func (v Value) IsLate() bool {
	return v.Late || slices.ContainsFunc(v.Items, Value.IsLate) ||
		slices.ContainsFunc(v.Entries, func(e Entry) bool { return e.Value.IsLate() })
}

// checkCommon checks what holds for every type, and asks the type's own
// Validate, which has to wait where properties are late.
func checkCommon(r *Resource, late bool) model.Problems {
	var out model.Problems
	meta := r.Meta()
	if len(r.Type.Ensures) > 0 && meta.Ensure == "" {
		meta.Ensure = r.Type.Ensures[0]
	}
	if strings.TrimSpace(meta.Name) == "" {
		out = append(out, model.Problem{Property: "name", Message: "a " + r.Type.Name + " needs a name", Hint: r.Type.NameHelp, Cause: model.ErrResourceNameRequired})
		return out
	}
	if len(r.Type.Ensures) > 0 && !slices.Contains(r.Type.Ensures, meta.Ensure) {
		out.Property("ensure", "one of "+strings.Join(r.Type.Ensures, ", "), "invalid ensure %q", meta.Ensure)
	}
	if meta.Retry < 0 {
		out.Property("retry", "", "retry must not be negative")
	}
	if !slices.Contains([]model.Drift{"", model.DriftRepair, model.DriftReport, model.DriftIgnore}, meta.Drift) {
		out.Property("drift", "one of repair, report, ignore", "invalid drift %q", meta.Drift)
	}
	if meta.Provider != "" && !slices.Contains(r.Type.Providers, meta.Provider) {
		p := model.Problem{Property: "provider", Message: "there is no provider " + strconv.Quote(meta.Provider) + " of " + r.Type.Name, Hint: "one of " + strings.Join(r.Type.Providers, ", "), Cause: model.ErrProviderNotFound}
		out = append(out, p)
	}
	if !late {
		out = append(out, r.Spec.Validate()...)
	}

	return out
}

type decoder struct {
	problems model.Problems
	secrets  []model.Secret
}

// place puts the problems that only know their property where that stands.
func (d *decoder) place(places map[string]model.Position, pos model.Position) {
	for i := range d.problems {
		p := &d.problems[i]
		if p.Cause == nil {
			p.Cause = model.ErrResourceInvalid
		}
		if !p.Pos.IsZero() {
			continue
		}
		p.Pos = pos
		if at, ok := places[p.Property]; ok && !at.IsZero() {
			p.Pos = at
		}
	}
}

// into decodes v into a field. Null leaves the default: it means not set.
func (d *decoder) into(f reflect.Value, key string, v Value) {
	if v.Kind == Null {
		return
	}
	if v.Secret && len(v.Text) > 0 {
		d.secrets = append(d.secrets, model.NewSecret(v.Text))
	}
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	if f.Addr().Type().Implements(textUnmarshaler) {
		d.text(f, key, v)
		return
	}
	switch f.Kind() {
	case reflect.Slice:
		d.list(f, key, v)
	case reflect.Map:
		d.mapping(f, key, v)
	case reflect.Struct:
		d.structure(f, key, v)
	case reflect.Interface:
		d.gather(v)
		f.Set(reflect.ValueOf(revealed(v.Plain())))
	default:
		d.scalar(f, key, v)
	}
}

func (d *decoder) text(f reflect.Value, key string, v Value) {
	if !v.IsScalar() {
		d.mismatch(key, "a string", v)
		return
	}
	if err := f.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(v.Text)); err != nil {
		d.problems.Add(v.Pos, "", "`%s`: %s", key, d.shown(v, err.Error()))
	}
}

func (d *decoder) scalar(f reflect.Value, key string, v Value) {
	switch {
	case !v.IsScalar():
		d.mismatch(key, kindName(f.Kind()), v)
	case f.Kind() == reflect.String:
		f.SetString(v.Text)
	case f.Kind() == reflect.Bool:
		b, err := parseBool(v)
		if err != nil {
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
		panic("unsupported property kind " + f.Kind().String() + " of " + key)
	}
}

// parseBool takes the booleans of YAML 1.1 too when they were not quoted,
// because that is what older manifests hold.
func parseBool(v Value) (bool, error) {
	switch strings.ToLower(v.Text) {
	case "true", "yes", "on":
		return true, nil
	case "false", "no", "off":
		return false, nil
	default:
		return false, strconv.ErrSyntax
	}
}

func (d *decoder) list(f reflect.Value, key string, v Value) {
	if v.Kind != List {
		hint := ""
		if v.IsScalar() {
			hint = "write it as a list: [" + d.shown(v, v.Text) + "]"
		}
		d.problems.Add(v.Pos, hint, "`%s` must be a list, not %s", key, v.Kind)
		return
	}
	out := reflect.MakeSlice(f.Type(), len(v.Items), len(v.Items))
	for i, item := range v.Items {
		if item.Kind == Null {
			d.mismatch(key, "a list without empty items", item)
			continue
		}
		d.into(out.Index(i), key, item)
	}
	f.Set(out)
}

func (d *decoder) mapping(f reflect.Value, key string, v Value) {
	if v.Kind != Map {
		d.mismatch(key, "a mapping", v)
		return
	}
	out := reflect.MakeMapWithSize(f.Type(), len(v.Entries))
	for _, e := range v.Entries {
		item := reflect.New(f.Type().Elem()).Elem()
		d.into(item, key+"."+e.Key, e.Value)
		out.SetMapIndex(reflect.ValueOf(e.Key), item)
	}
	f.Set(out)
}

func (d *decoder) structure(f reflect.Value, key string, v Value) {
	if v.Kind != Map {
		d.mismatch(key, "a mapping", v)
		return
	}
	properties := fieldProperties(f.Type(), nil, false)
	for _, e := range v.Entries {
		p, known := find(properties, e.Key)
		if !known {
			d.problems = append(d.problems, Unknown(e.Pos, "key", e.Key, " in `"+key+"`", keysOf(properties)))
			continue
		}
		d.into(f.FieldByIndex(p.index), key+"."+e.Key, e.Value)
	}
}

// gather collects the secrets within a value that is kept whole.
func (d *decoder) gather(v Value) {
	for _, item := range v.Items {
		if item.Secret {
			d.secrets = append(d.secrets, model.NewSecret(item.Text))
		}
		d.gather(item)
	}
	for _, e := range v.Entries {
		if e.Value.Secret {
			d.secrets = append(d.secrets, model.NewSecret(e.Value.Text))
		}
		d.gather(e.Value)
	}
}

func (d *decoder) mismatch(key, want string, v Value) {
	got := v.Kind.String()
	if v.IsScalar() {
		got = strconv.Quote(d.shown(v, v.Text))
	}
	d.problems.Add(v.Pos, "", "`%s` must be %s, not %s", key, want, got)
}

func (d *decoder) shown(v Value, text string) string {
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

// revealed takes the secrets in a plain value out of their wrapping, for the
// resource that is meant to have them.
func revealed(v any) any {
	switch v := v.(type) {
	case model.Secret:
		return v.Reveal()
	case []any:
		for i := range v {
			v[i] = revealed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = revealed(v[k])
		}
	}

	return v
}
