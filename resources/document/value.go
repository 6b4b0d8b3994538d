package document

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds of values. A scalar keeps its text as written, for example mode: 0644 and ensure: 1.10.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

// String returns the name of the kind for users.
func (k Kind) String() string {
	return [...]string{"nothing", "a boolean", "a number", "a string", "a list", "a mapping"}[k]
}

// Value is a value of a document with its position.
type Value struct {
	Kind Kind
	// Secret reports whether the text contains a secret.
	Secret bool
	// Derived reports whether the text was derived from a secret.
	Derived bool
	// Deferred marks a value that is known only after other resources have run.
	Deferred bool
	// Text is a scalar as written.
	Text string
	// Inserted are the results of expressions in Text that affect the splitting of a command line.
	// It is nil for most values.
	Inserted *Inserted
	Pos      model.Position
	Items    []Value
	// Entries are the entries of a mapping in order, with unique keys.
	Entries []Entry
}

// Inserted are parts of a text in order: the offsets of the start and the end.
type Inserted [][2]int

// Entry is an entry of a mapping.
type Entry struct {
	Key   string
	Pos   model.Position
	Value Value
}

// Get returns the value of a key of a mapping.
func (v Value) Get(key string) (Value, bool) {
	for i := range v.Entries {
		if v.Entries[i].Key == key {
			return v.Entries[i].Value, true
		}
	}

	return Value{}, false
}

// IsScalar reports whether Text contains the value.
func (v Value) IsScalar() bool { return v.Kind == Bool || v.Kind == Number || v.Kind == String }

// Plain returns the value for expressions: nil, bool, int, float64, string, []any or
// map[string]any. A secret scalar becomes a model.Secret. A number that is not in its shortest form
// (0644, 1.10) stays text, because as a number it would become 644 or 1.1.
func (v Value) Plain() any {
	return v.PlainWith(func(s model.Secret) any { return s })
}

// PlainWith is Plain with a function that converts secrets.
func (v Value) PlainWith(secret func(model.Secret) any) any {
	switch {
	case v.IsScalar() && v.Secret:
		return secret(v.AsSecret())
	case v.Kind == Null:
		return nil
	case v.Kind == Number:
		return plainNumber(v.Text)
	case v.Kind == List:
		out := make([]any, len(v.Items))
		for i, item := range v.Items {
			out[i] = item.PlainWith(secret)
		}
		return out
	case v.Kind == Map:
		out := make(map[string]any, len(v.Entries))
		for _, e := range v.Entries {
			out[e.Key] = e.Value.PlainWith(secret)
		}
		return out
	case v.Kind == Bool:
		if b, err := strconv.ParseBool(v.Text); err == nil {
			return b
		}
	}

	return v.Text
}

// AsSecret returns the text as a secret.
func (v Value) AsSecret() model.Secret {
	if v.Derived {
		return model.NewDerived(v.Text)
	}

	return model.NewSecret(v.Text)
}

func plainNumber(text string) any {
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return text
	}
	if shortest, err := json.Marshal(f); err != nil || string(shortest) != text {
		return text
	}

	return f
}

// ParseBool parses true, false and the booleans of YAML 1.1, which older manifests contain.
func ParseBool(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	default:
		return false, false
	}
}

// EachScalar calls do with each scalar of a value. do may change the scalar.
func (v *Value) EachScalar(do func(*Value)) {
	if v.IsScalar() {
		do(v)
	}
	for i := range v.Items {
		v.Items[i].EachScalar(do)
	}
	for i := range v.Entries {
		v.Entries[i].Value.EachScalar(do)
	}
}

// IsDeferred reports whether the value or any part of it is deferred.
func (v Value) IsDeferred() bool {
	return v.Deferred || slices.ContainsFunc(v.Items, Value.IsDeferred) ||
		slices.ContainsFunc(v.Entries, func(e Entry) bool { return e.Value.IsDeferred() })
}

// AppendJSON appends the value as JSON. It keeps the order of keys and the text of numbers, and it
// reveals secrets.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case List:
		b = append(b, '[')
		for i, item := range v.Items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.AppendJSON(b)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		for i, e := range v.Entries {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, e.Key), ':')
			b = e.Value.AppendJSON(b)
		}
		return append(b, '}')
	case Null:
		return append(b, "null"...)
	case Bool:
		if yes, err := strconv.ParseBool(v.Text); err == nil {
			return strconv.AppendBool(b, yes)
		}
	case Number:
		if json.Valid([]byte(v.Text)) {
			return append(b, v.Text...)
		}
	}

	return appendText(b, v.Text)
}

func appendText(b []byte, s string) []byte {
	text := bytes.NewBuffer(b)
	e := json.NewEncoder(text)
	// An escape for HTML takes six characters, and the size of messages is limited.
	e.SetEscapeHTML(false)
	_ = e.Encode(s)

	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
