package fleet

import (
	"bytes"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
)

// same reports whether two values assign the same, except for the time they were
// issued, and signed or not.
func same(a, b []byte) bool {
	first, x, ok := signed.Assignment(a)
	second, y, also := signed.Assignment(b)
	if !ok || !also {
		return x != nil && bytes.Equal(x, y)
	}
	first.Issued, second.Issued = time.Time{}, time.Time{}
	x, err := model.EncodeAssignment(first)
	y, otherErr := model.EncodeAssignment(second)

	return err == nil && otherErr == nil && bytes.Equal(x, y)
}

// Readable returns a value for people: a bare manifest as it is, an assignment
// document as YAML with the manifest's lines as lines, a signed one without what is
// around it.
func Readable(value []byte) string {
	a, content, ok := signed.Assignment(value)
	if content != nil {
		value = content
	}
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
