package edits

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/resources/document"
)

// Value is a value of any kind, as it is written: a number keeps its text. The zero value is none.
type Value struct {
	kind document.Kind
	text string
	// items are the items of a list or the values of a mapping.
	items []Value
	json  string
}

// UnmarshalValue reads a value of a document.
func (v *Value) UnmarshalValue(from document.Value) {
	*v = Value{kind: from.Kind, text: from.Text, json: string(from.AppendJSON(nil))}
	add := func(item document.Value) {
		var out Value
		out.UnmarshalValue(item)
		v.items = append(v.items, out)
	}
	for _, item := range from.Items {
		add(item)
	}
	for _, e := range from.Entries {
		add(e.Value)
	}
}

// MarshalJSON returns the value as JSON.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.IsZero() {
		return []byte("null"), nil
	}

	return []byte(v.json), nil
}

// IsZero reports whether there is no value.
func (v Value) IsZero() bool { return v.kind == document.Null }

func (v Value) isScalar() bool {
	return v.kind == document.Bool || v.kind == document.Number || v.kind == document.String
}

// texts returns the text of a scalar, or the texts of a list. It is false for any other value.
func (v Value) texts() ([]string, bool) {
	if v.isScalar() {
		return []string{v.text}, true
	}
	if v.kind != document.List {
		return nil, false
	}
	var out []string
	for _, item := range v.items {
		if !item.isScalar() {
			return nil, false
		}
		out = append(out, item.text)
	}

	return out, true
}

// maxShown is the maximum number of bytes of a value in a message.
const maxShown = 60

// shown returns a value for a message.
func shown(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + "…"
}

// shownJSON returns a value of JSON for a message: texts without quotes, all else on one line.
func shownJSON(raw string) string {
	var text string
	if json.Unmarshal([]byte(raw), &text) == nil {
		return shown(text)
	}
	var b strings.Builder
	inText := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && inText:
			b.WriteString(raw[i : i+2])
			i++
			continue
		case c == '"':
			inText = !inText
		case !inText && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		b.WriteByte(raw[i])
	}

	return shown(b.String())
}
