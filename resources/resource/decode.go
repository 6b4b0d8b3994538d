package resource

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/health"
)

// Decode returns the resource of a mapping of properties, declared at pos. It is strict and reports every
// problem at its position. The resource is nil if there is a problem.
func Decode(t *Type, properties document.Value, pos model.Position) (*Resource, model.Problems) {
	r, problems := decodeSpec(t, properties, pos)
	if len(problems) > 0 {
		return nil, problems
	}

	return r, nil
}

// decodeSpec returns a resource with the readable properties, and the problems of the other properties.
func decodeSpec(t *Type, properties document.Value, pos model.Position) (*Resource, model.Problems) {
	var d document.Decoder
	spec := t.New()
	deferred := false
	if properties.Kind != document.Map && properties.Kind != document.Null {
		d.Problems.Add(properties.Pos, "write its properties as key: value", "%s must be a mapping, not %s", t.Name, properties.Kind)
	}
	for i, e := range properties.Entries {
		p, known := t.Property(e.Key)
		if !known {
			d.Problems.AddMade(func() model.Problem { return t.UnknownProperty(e.Key, e.Pos) })
			continue
		}
		if first := slices.IndexFunc(properties.Entries[:i], func(e document.Entry) bool { return p.Is(e.Key) }); first >= 0 {
			d.Problems.Add(e.Pos, "keep one of them", "`%s` is set twice, first at %s", p.Key, properties.Entries[first].Value.Pos)
			continue
		}
		d.Place(p.Key, e.Value.Pos)
		if e.Value.IsDeferred() {
			deferred = true
			if p.Common {
				d.Problems.Add(e.Value.Pos, "use outputs in the type's own properties", "`%s` must be known before the run", e.Key)
			}
			continue
		}
		if p.List != "" && e.Value.Kind == document.List {
			d.Problems.Add(e.Value.Pos, "write a list as `"+p.List+"`", "`%s` must be a string, not a list", e.Key)
			continue
		}
		before := len(d.Secrets)
		d.Into(p.Of(spec), e.Key, e.Value)
		if e.Value.IsScalar() && e.Value.Text == "" {
			checkEmpty(&d.Problems, p, e)
		}
		if len(d.Secrets) > before {
			checkSecrets(&d.Problems, p.Key, e.Value)
		}
	}
	hidesValues := spec.Meta().Sensitive || len(d.Secrets) > 0
	d.Secrets = append(d.Secrets, secretsOf(t, spec)...)
	r := &Resource{Type: t, Spec: spec, Pos: pos, Secrets: d.Secrets}
	if len(d.Secrets) > 0 {
		r.Meta().Sensitive = true
	}
	d.Problems = append(d.Problems, withoutConsequences(checkCommon(r, deferred), d.Problems)...)
	place(d.Problems, d.Positions, pos)
	if len(d.Problems) > 0 {
		redactProblems(&d, r, properties, hidesValues)
	}

	return r, d.Problems
}

// checkSecrets reports secrets in a property that shows them; v holds one.
func checkSecrets(out *model.Problems, key string, v document.Value) {
	const shown = "names are shown in logs and reports"
	switch key {
	case "register_when_stable":
		out.Add(v.Pos, "take the secret out", "`%s` cannot hold a secret, because all of it is published", key)
	case "alias":
		out.Add(v.Pos, shown, "`%s` cannot be secret", key)
	case "health_checks":
		for _, check := range v.Items {
			name, _ := check.Get("name")
			if command, _ := check.Get("command"); name.Secret {
				out.Add(name.Pos, shown, "the name of a health check cannot be secret")
			} else if name.Text == "" && command.Secret {
				out.Add(command.Pos, shown, "a health check with a secret command needs a `name`, or it would be called by its program")
			}
		}
	}
}

// withoutConsequences drops the problems of unread properties, their parts and their parents,
// because those properties already have a problem.
func withoutConsequences(found, unread model.Problems) model.Problems {
	return slices.DeleteFunc(found, func(p model.Problem) bool {
		return slices.ContainsFunc(unread, func(u model.Problem) bool {
			return u.Property != "" && (strings.HasPrefix(p.Property+".", u.Property+".") || strings.HasPrefix(u.Property, p.Property+".") && p.Property != "")
		})
	})
}

// redactProblems removes the secrets of the resource from the problems, which quote values. With hidesValues
// it removes all values of the type's properties.
func redactProblems(d *document.Decoder, r *Resource, properties document.Value, hidesValues bool) {
	var secrets []model.Secret
	for _, s := range d.Secrets {
		secrets = append(secrets, model.NewSecret(s.Reveal()))
	}
	if hidesValues {
		for _, e := range properties.Entries {
			if p, known := r.Type.Property(e.Key); known && !p.Common {
				e.Value.EachScalar(func(v *document.Value) { secrets = append(secrets, model.NewSecret(v.Text)) })
			}
		}
	}
	redactor := redact.New(secrets...)
	for i := range d.Problems {
		p := &d.Problems[i]
		p.Message, p.Hint = redactor.Redact(p.Message), redactor.Redact(p.Hint)
	}
}

// DecodeQuestion is Decode for a resource that is only observed: properties may be missing.
func DecodeQuestion(t *Type, properties document.Value, pos model.Position) (*Resource, model.Problems) {
	r, problems := decodeSpec(t, properties, pos)
	problems = slices.DeleteFunc(problems, func(p model.Problem) bool {
		property, _, _ := strings.Cut(p.Property, ".")
		_, given := properties.Get(property)
		return !given && p.Property != "" && p.Property != "name"
	})
	if len(problems) > 0 {
		return nil, problems
	}

	return r, nil
}

// secretsOf returns the secrets that a spec declares, and the values that a resource with
// sensitive: true hides.
func secretsOf(t *Type, spec Spec) []model.Secret {
	var out []model.Secret
	if s, ok := spec.(Secretive); ok {
		out = s.Secrets()
	}
	if spec.Meta().Sensitive {
		for _, p := range t.Properties {
			if p.Sensitive {
				collect(p.Of(spec), &out)
			}
		}
	}

	return out
}

func collect(v reflect.Value, out *[]model.Secret) {
	switch v.Kind() {
	case reflect.String:
		*out = append(*out, model.NewSecret(v.String()))
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collect(v.Elem(), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			collect(v.Field(i), out)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			collect(v.MapIndex(k), out)
		}
	}
}

// checkEmpty reports an empty text that would count as not set.
func checkEmpty(out *model.Problems, p Property, e document.Entry) {
	if len(p.Enum) > 0 {
		out.Add(e.Value.Pos, "leave it out, or give one of "+strings.Join(p.Enum, ", "), "`%s` is empty", e.Key)
	} else if p.Filled {
		out.Add(e.Value.Pos, "leave it out, or set it to null", "`%s` is empty", e.Key)
	}
}

// checkText reports a name that is not UTF-8, which JSON cannot show.
func checkText(out *model.Problems, property, text string) {
	if !utf8.ValidString(text) {
		out.Property(property, "use only UTF-8 in it", "the %s is not UTF-8, and no report could tell it from others: %q", property, text)
	}
}

// checkCommon checks the common properties, and calls Validate of the spec unless some
// properties are deferred.
func checkCommon(r *Resource, deferred bool) model.Problems {
	var out model.Problems
	meta := r.Meta()
	if len(r.Type.Ensures) > 0 && meta.Ensure == "" {
		meta.Ensure = r.Type.Ensures[0]
	}
	if strings.TrimSpace(meta.Name) == "" {
		out = append(out, model.Problem{Property: "name", Message: "the " + r.Type.Name + " needs a name", Hint: r.Type.NameHelp, Cause: model.ErrResourceNameRequired})
		return out
	}
	if len(r.Type.Ensures) > 0 && !slices.Contains(r.Type.Ensures, meta.Ensure) {
		out.Property("ensure", EnsureMeant(meta.Ensure, r.Type.Ensures)+"one of "+strings.Join(r.Type.Ensures, ", "), "invalid ensure %q", meta.Ensure)
	}
	checkText(&out, "name", meta.Name)
	checkText(&out, "alias", meta.Alias)
	if meta.Retry < 0 {
		out.Property("retry", "", "retry must not be negative")
	}
	if meta.Limit < 0 {
		out.Property("limit", "the most changes a minute, or 0 for any number", "`limit` must not be negative")
	}
	if !slices.Contains([]model.Drift{"", model.DriftRepair, model.DriftReport, model.DriftIgnore}, meta.Drift) {
		out.Property("drift", "one of repair, report, ignore", "invalid drift %q", meta.Drift)
	}
	if meta.Provider != "" && !slices.Contains(r.Type.Providers, meta.Provider) {
		p := model.Problem{Property: "provider", Message: "there is no provider " + strconv.Quote(meta.Provider) + " of " + r.Type.Name, Hint: "one of " + strings.Join(r.Type.Providers, ", "), Cause: model.ErrProviderNotFound}
		out = append(out, p)
	}
	problems := health.Validate(meta.HealthChecks, r.Type.Name, r.Type.Refreshes)
	if len(problems) == 0 {
		health.Complete(meta.HealthChecks)
	}
	out = append(append(out, problems...), registration.Validate(meta.RegisterWhenStable)...)
	if !deferred {
		out = append(out, r.Spec.Validate()...)
	}

	return out
}

// place sets the positions of problems that only name a property.
func place(problems model.Problems, places map[string]model.Position, pos model.Position) {
	for i := range problems {
		p := &problems[i]
		if p.Cause == nil {
			p.Cause = model.ErrResourceInvalid
		}
		if p.Pos.IsZero() {
			p.Pos = placeOf(p.Property, places, pos)
		}
	}
}

// placeOf returns the position of a property. For a missing property, such as a name in health_checks.0,
// it returns the position of the parent.
func placeOf(property string, places map[string]model.Position, pos model.Position) model.Position {
	for {
		if at, ok := places[property]; ok && !at.IsZero() {
			return at
		}
		end := strings.LastIndexByte(property, '.')
		if end < 0 {
			return pos
		}
		property = property[:end]
	}
}
