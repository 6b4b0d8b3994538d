package edits

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// SettingSpec is the properties of a setting.
type SettingSpec struct {
	Target
	Format    string `json:"format,omitempty" jsonschema:"enum=ini,enum=keyvalue,enum=json" jsonschema_description:"Format of the file; default: by the suffix .ini or .json"`
	Section   string `json:"section,omitempty" filled:"true" jsonschema_description:"Section of an ini file; default: the lines before the first section"`
	Key       Value  `json:"key,omitzero" jsonschema_description:"The option; in JSON also a list, the path to a nested one; required except for the absence of a section"`
	Value     Value  `json:"value,omitzero" sensitive:"true" jsonschema_description:"The value, or a list: then the key occurs once for each value, in this order; in JSON any value; required except with absent"`
	Separator string `json:"separator,omitempty" filled:"true" jsonschema_description:"Text between a new key and its value; default: as most keys of the file, else ' = ' in ini and '=' in keyvalue"`
	Creation
}

// Setting returns the type setting with its providers, for resources.All.
func Setting(providers ...Posix) *resource.Type {
	return resource.Of(kind{"setting", "Settings of a configuration file: ini, key and value, or JSON", func() Part { return &SettingSpec{} }}, providers...)
}

// The formats.
const (
	formatINI      = "ini"
	formatKeyValue = "keyvalue"
	formatJSON     = "json"
)

// format returns the format, empty if it is unknown.
func (s *SettingSpec) format() string {
	if s.Format == "" {
		switch filepath.Ext(s.path()) {
		case ".ini":
			return formatINI
		case ".json":
			return formatJSON
		}
	}

	return s.Format
}

func (s *SettingSpec) ref() model.Ref { return model.Ref{Type: "setting", Name: s.Name} }

func (s *SettingSpec) isComplete() bool { return !s.Value.IsZero() || s.isAbsent() }

// id is the section and the key.
func (s *SettingSpec) id() string {
	return "setting:" + s.Section + "\x00" + strings.Join(s.keys(), "\x00")
}

// keys returns the key, or the path to a nested key.
func (s *SettingSpec) keys() []string {
	texts, _ := s.Key.texts()

	return texts
}

// keyName returns the key for messages.
func (s *SettingSpec) keyName() string { return strings.Join(s.keys(), ".") }

// Validate reports every problem of the properties.
func (s *SettingSpec) Validate() model.Problems {
	var out model.Problems
	s.validatePath(&out)
	s.validateCreation(&out, s.Ensure)
	s.validateFormat(&out)
	format := s.format()
	keys, valid := s.Key.texts()
	switch {
	case s.Key.IsZero() && (!s.isAbsent() || format != formatINI || s.Section == ""):
		out.Property("key", "for example key: memory_limit", "`key` is required")
	case s.Key.IsZero():
	case !valid || len(keys) == 0:
		out.Property("key", "write a text, or in JSON a list of texts", "`key` is no key")
	case s.Key.kind == document.List && format != formatJSON:
		out.Property("key", "write a text, and section for the section", "a list of keys is only for JSON")
	case format != formatJSON:
		s.validateKey(&out, keys[0])
	}
	if s.Separator != "" && !slices.Contains(separators(format), strings.Trim(s.Separator, " \t")) {
		out.Property("separator", "for example separator: ' = '", "invalid separator %q of %s", s.Separator, format)
	}
	if s.isAbsent() {
		return out
	}
	if s.Value.IsZero() {
		out.Property("value", "", "`value` is required unless ensure is absent")
	} else if format != formatJSON {
		s.validateValue(&out)
	}

	return out
}

func (s *SettingSpec) validateFormat(out *model.Problems) {
	format := s.format()
	if s.Section != "" && format != formatINI {
		out.Property("section", "remove it, or set format: ini", "only ini files have sections")
	}
	if s.Section != "" && format == formatINI {
		if name, is := sectionOf("[" + s.Section + "]"); !is || name != s.Section || name[0] == '[' || strings.ContainsAny(s.Section, "\n\r\x00") {
			out.Property("section", "write the name without brackets", "invalid section %q", s.Section)
		}
	}
	switch suffix := filepath.Ext(s.path()); {
	case format == "" && slices.Contains([]string{".yaml", ".yml", ".toml"}, suffix):
		out.Property("format", "write a drop-in file, or a `file` with content: \"${ toJSON(…) }\" (JSON is YAML)", "%s files are not edited", suffix)
	case format == "":
		out.Property("format", "one of ini, keyvalue, json", "`format` is required, because the suffix does not tell it")
	case !slices.Contains([]string{formatINI, formatKeyValue, formatJSON}, format):
		out.Property("format", "one of ini, keyvalue, json; for YAML and TOML write a drop-in file, or a `file` with content: \"${ toJSON(…) }\"", "invalid format %q", format)
	}
}

// separators returns the separators of a format without blanks. The empty one is a blank.
func separators(format string) []string {
	switch format {
	case formatINI:
		return []string{"=", ":"}
	case formatKeyValue:
		return []string{"=", ":", ""}
	default:
		return nil
	}
}

func (s *SettingSpec) validateKey(out *model.Problems, key string) {
	if s.format() == formatINI && s.Separator == "" && strings.Contains(key, ":") {
		out.Property("separator", "write separator: '=' or separator: ':'", "the key %q has a colon, which may be a separator", key)
	}
	g := s.grammarWith(cmp.Or(s.Separator, s.defaultSeparator()))
	if option, is := g.option(key + cmp.Or(s.Separator, s.defaultSeparator()) + "x"); !is || option.key != key || strings.ContainsAny(key, "\n\r\x00") {
		out.Property("key", "write it as it is in the file, without blanks around it", "invalid key %q", key)
	}
}

func (s *SettingSpec) validateValue(out *model.Problems) {
	values, valid := s.Value.texts()
	switch {
	case !valid:
		out.Property("value", "write a text, or a list of texts", "`value` of %s is no text", s.format())
	case len(values) == 0:
		out.Property("value", "write ensure: absent", "`value` is an empty list")
	}
	for _, value := range values {
		switch {
		case strings.ContainsAny(value, "\n\r\x00"):
			out.Property("value", "write it on one line", "a value has no line ends and no NUL bytes")
		case strings.Trim(value, " \t") != value:
			out.Property("value", "remove them, or put quotes around it as the program reads them", "the value begins or ends with blanks")
		case strings.HasSuffix(value, `\`):
			out.Property("value", "put quotes around it as the program reads them", "the value ends with a backslash, which continues a line")
		}
	}
}

// Warnings returns properties without effect.
func (s *SettingSpec) Warnings() model.Problems {
	var more []string
	if !s.Value.IsZero() {
		more = append(more, "value")
	}
	if s.Separator != "" && s.format() != formatJSON {
		more = append(more, "separator")
	}

	return s.warnings(s.Ensure, more...)
}

// Edit applies the setting to a text.
func (s *SettingSpec) Edit(before Text, _ []Part) Edit {
	if s.format() == formatJSON {
		return s.editJSON(before)
	}

	return s.editLines(before)
}

// changed returns the message of a changed value. A sensitive one has no values.
func (s *SettingSpec) changed(from, to string) string {
	message := "Would have changed " + s.keyName()
	if s.Sensitive {
		return message
	}

	return message + " from " + shown(from) + " to " + shown(to)
}
