package config

import (
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// Example returns the configuration as a YAML document with a comment for
// each key; parsed, it is the same configuration again.
func Example(c Config) ([]byte, error) {
	var b strings.Builder
	b.WriteString("# The configuration of a muster agent. Every key may be left out.\n")
	for _, f := range c.fields() {
		indent := strings.Repeat("  ", strings.Count(f.key, "."))
		key := f.key[strings.LastIndexByte(f.key, '.')+1:]
		b.WriteString("\n")
		comment(&b, indent, f.doc, f.restart)
		b.WriteString(indent + key + ":")
		if f.section {
			b.WriteString("\n")
			continue
		}
		value, err := yaml.Marshal(f.value.Interface())
		if err != nil {
			return nil, err
		}
		text := strings.TrimRight(string(value), "\n")
		if isBlock(f.value) {
			text = "\n" + indent + "  " + strings.ReplaceAll(text, "\n", "\n"+indent+"  ")
		} else {
			text = " " + text
		}
		b.WriteString(text + "\n")
	}

	return []byte(b.String()), nil
}

// isBlock reports whether YAML writes a value over several lines.
func isBlock(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() > 0
}

// comment writes a text as comment lines of at most 80 characters or so.
func comment(b *strings.Builder, indent, text string, restart bool) {
	if restart {
		text += " A change needs a restart."
	}
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 90 {
			b.WriteString(line + "\n")
			line = indent + "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
