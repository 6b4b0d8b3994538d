package fleet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Terms are the settings of an assignment besides its manifest. With the zero
// value a manifest can be pushed bare.
type Terms struct {
	Data     map[string]any
	Noop     bool
	Drift    model.Drift
	Interval time.Duration
	When     string
	Priority int
	Expires  time.Time
}

// IsZero reports whether there are no terms.
func (t Terms) IsZero() bool {
	return len(t.Data) == 0 && !t.Noop && t.Drift == "" && t.Interval == 0 && t.When == "" && t.Priority == 0 && t.Expires.IsZero()
}

// assignment returns the document of terms, without manifest and bundle.
func (t Terms) assignment(name string, issued time.Time) model.Assignment {
	return model.Assignment{
		Protocol: model.ProtocolAssignment, Name: name, Issued: issued,
		Data: t.Data, Noop: t.Noop, Drift: t.Drift, Interval: model.Duration(t.Interval), When: t.When, Priority: t.Priority, Expires: t.Expires,
	}
}

// encode writes an assignment as JSON that YAML parsers read the same, so that a
// manifest's text is kept byte for byte whatever is in it.
func encode(a model.Assignment) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(a); err != nil {
		return nil, fmt.Errorf("encode assignment: %w", err)
	}

	return escapeForYAML(b.Bytes()), nil
}

// escapeForYAML escapes characters that are plain in JSON, and line breaks or
// invalid in YAML. They occur in strings only.
func escapeForYAML(encoded []byte) []byte {
	special := func(r rune) bool {
		return r >= 0x7f && r <= 0x9f || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
	}
	if !bytes.ContainsFunc(encoded, special) {
		return encoded
	}
	out := make([]byte, 0, len(encoded)+64)
	for _, r := range string(encoded) {
		if special(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}

	return out
}

// Assignment decodes the assignment document of a value; ok is false for any
// other value, such as a bare manifest.
func Assignment(value []byte) (a model.Assignment, ok bool) {
	if json.Unmarshal(value, &a) != nil {
		a = model.Assignment{}
		if fromYAML(value, &a) != nil {
			return model.Assignment{}, false
		}
	}

	return a, a.Protocol == model.ProtocolAssignment
}

// ContentDigest returns the digest that nodes report for a value: of the manifest
// or the bundle in a document, else of the value.
func ContentDigest(value []byte) string {
	switch a, ok := Assignment(value); {
	case !ok:
		return model.DigestOf(value)
	case a.Bundle != "":
		return a.Bundle
	default:
		return model.DigestOf([]byte(a.Manifest))
	}
}

// fromYAML is yaml.Unmarshal, with its panics as errors.
func fromYAML(text []byte, into any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()

	return yaml.Unmarshal(text, into)
}

// same reports whether two values are equal, except for the time they were issued.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	first, ok := Assignment(a)
	second, also := Assignment(b)
	if !ok || !also {
		return false
	}
	first.Issued, second.Issued = time.Time{}, time.Time{}
	x, err := json.Marshal(first)
	y, otherErr := json.Marshal(second)

	return err == nil && otherErr == nil && bytes.Equal(x, y)
}

// Readable returns a value for people: a bare manifest as it is, an assignment
// document as YAML with the manifest's lines as lines.
func Readable(value []byte) string {
	a, ok := Assignment(value)
	if !ok {
		return string(value)
	}
	encoded, err := encode(a)
	if err != nil {
		return string(value)
	}
	text, err := document.YAML(encoded)
	if err != nil {
		return string(value)
	}

	return string(text)
}
