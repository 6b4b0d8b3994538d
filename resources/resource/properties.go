package resource

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Property is one property of a type, from a field of the spec. Manifests, flags, schemas and documentation
// are derived from it.
type Property struct {
	document.Field
	// Help is the jsonschema_description of the field, or for ensure the EnsureHelp of the type.
	Help string
	// Enum and Default come from the jsonschema tag of the field. The type sets them for ensure and
	// provider.
	Enum    []string
	Default string
	// Sensitive, by the tag sensitive:"true", means that sensitive: true hides the value of this property.
	Sensitive bool
	// Filled, by the tag filled:"true", means that it must not be an empty text: an expression with an empty
	// result must not count as not set.
	Filled bool
	// Line, by the tag line, means that the text, or each text in it, is a command line: for the named
	// provider, or for any provider.
	Line string
	// FlagDefault, by the tag flagdefault, is the default of its flag, unless ensure is absent.
	FlagDefault string
	// FlagAliases, by the tag flags, are other names of its flag. Short, by the tag short, is the
	// letter of its flag.
	FlagAliases []string
	Short       string
	// Literal, by the tag literal:"true", means that expressions in its value are not evaluated.
	Literal bool
	// List, by the tag list, is the property for the same command line as a list of words. If neither is set, the
	// name is the command line.
	List string
	// GoType is the field's type, pointers removed.
	GoType reflect.Type
}

func properties(t *Type) []Property {
	spec := t.New()
	var out []Property
	for _, f := range document.Fields(reflect.TypeOf(spec).Elem()) {
		p := Property{
			Field: f, Help: f.Tag.Get("jsonschema_description"), Sensitive: f.Tag.Get("sensitive") == "true", Filled: f.Tag.Get("filled") == "true",
			Line: f.Tag.Get("line"), List: f.Tag.Get("list"), Literal: f.Tag.Get("literal") == "true", GoType: f.Type,
			FlagDefault: f.Tag.Get("flagdefault"), Short: f.Tag.Get("short"),
		}
		if aliases := f.Tag.Get("flags"); aliases != "" {
			p.FlagAliases = strings.Split(aliases, ",")
		}
		if p.GoType.Kind() == reflect.Pointer {
			p.GoType = p.GoType.Elem()
		}
		p.Enum, p.Default = Choices(f.Tag)
		switch p.Key {
		case "ensure":
			p.Enum, p.Help, p.Default = t.Ensures, cmp.Or(t.EnsureHelp, p.Help), append(t.Ensures, spec.Meta().Ensure)[0]
		case "provider":
			p.Enum = t.Providers
		}
		out = append(out, p)
	}

	return out
}

// Choices returns the allowed values in the jsonschema tag of a field, none for any value, and the
// default.
func Choices(tag reflect.StructTag) (enum []string, def string) {
	for part := range strings.SplitSeq(tag.Get("jsonschema"), ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "enum":
			enum = append(enum, value)
		case "default":
			def = value
		}
	}

	return enum, def
}

// Of returns the field of the property in a spec.
func (p Property) Of(spec Spec) reflect.Value {
	return reflect.ValueOf(spec).Elem().FieldByIndex(p.Index)
}

// Property returns a property of the type by its key or an alias.
func (t *Type) Property(key string) (Property, bool) {
	for i := range t.Properties {
		if p := &t.Properties[i]; p.Is(key) {
			return *p, true
		}
	}

	return Property{}, false
}

// EnsureMeant returns the beginning of a hint for an unknown ensure value that another tool uses, or an empty
// string.
func EnsureMeant(ensure string, known []string) string {
	meant := ""
	switch ensure {
	case "link", "symlink":
		return "a link is a resource of the type `link`; "
	case "installed":
		meant = "present"
	case "started":
		meant = "running"
	case "restarted", "reloaded":
		if slices.Contains(known, "running") {
			return "that is no state: a service that subscribes to a resource is restarted when this changes; to do it once write muster fleet exec … -- systemctl " + strings.TrimSuffix(ensure, "ed") + "; "
		}
	case "removed", "uninstalled", "deleted":
		meant = "absent"
	}
	if !slices.Contains(known, meant) {
		return ""
	}

	return "did you mean `" + meant + "`? "
}

// elsewhere are the names of properties in other tools. The first property of a key that a type has counts.
var elsewhere = [...]struct{ key, property string }{
	{"state", "ensure"},
	{"src", "source"},
	{"src", "url"},
	{"src", "target"},
	{"cmd", "command"},
	{"chdir", "cwd"},
	{"become_user", "user"},
	{"runas", "user"},
	{"env", "environment"},
	{"makedirs", "parents"},
	{"dest", "path"},
	{"insertafter", "after"},
	{"insertbefore", "before"},
	{"search_string", "match"},
	{"backrefs", "expand"},
	{"firstmatch", "matches"},
	{"multiple", "matches"},
	{"append_on_no_match", "add"},
	{"block", "content"},
	{"option", "key"},
	{"setting", "key"},
	{"key_val_separator", "separator"},
}

// meant returns the hint for a key that other tools use, or an empty string.
func (t *Type) meant(key string) string {
	switch key {
	case "when":
		return "write `control: {if: …}`"
	case "loop", "with_items", "with_list", "with_dict":
		return "write `each`; its element is `each.value`"
	case "notify":
		return "name this resource in `subscribe` of the other one"
	case "before":
		return "name this resource in `require` of the other one"
	}
	for _, m := range elsewhere {
		if _, has := t.Property(m.property); has && key == m.key {
			return "write `" + m.property + "`"
		}
	}
	switch {
	case IsNameElsewhere(key):
		return "it is the name of the resource: write `- <" + key + ">:` with the properties below"
	case slices.Contains(t.Providers, key):
		return "it is a provider: write `provider: " + key + "`"
	default:
		return ""
	}
}

// IsNameElsewhere reports whether other tools use a key for the name of a resource.
func IsNameElsewhere(key string) bool {
	return slices.Contains([]string{"path", "dest", "destination", "pkg"}, key)
}

// UnknownProperty returns the problem of an unknown key.
func (t *Type) UnknownProperty(key string, pos model.Position) model.Problem {
	if hint := t.meant(key); hint != "" {
		return model.Problem{Pos: pos, Message: "unknown property `" + key + "` of " + t.Name, Hint: hint}
	}
	keys := make([]string, len(t.Properties))
	for i := range t.Properties {
		keys[i] = t.Properties[i].Key
	}

	return document.Unknown(pos, "property", key, " of "+t.Name, keys)
}
