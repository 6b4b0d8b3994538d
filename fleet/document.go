package fleet

import (
	"bytes"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// same reports whether two values are equal, except for the time they were issued.
func same(a, b []byte) bool {
	first, ok := model.DecodeAssignment(a)
	second, also := model.DecodeAssignment(b)
	if !ok || !also {
		return bytes.Equal(a, b)
	}
	first.Issued, second.Issued = time.Time{}, time.Time{}
	x, err := model.EncodeAssignment(first)
	y, otherErr := model.EncodeAssignment(second)

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
