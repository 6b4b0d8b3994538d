package fleet

import (
	"bytes"
	"encoding/json"
	"time"

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

// same reports whether two values are equal, except for the time they were issued.
func same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	first, ok := model.DecodeAssignment(a)
	second, also := model.DecodeAssignment(b)
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
	a, ok := model.DecodeAssignment(value)
	if !ok {
		return string(value)
	}
	encoded, err := model.EncodeAssignment(a)
	if err != nil {
		return string(value)
	}
	text, err := document.YAML(encoded)
	if err != nil {
		return string(value)
	}

	return string(text)
}
