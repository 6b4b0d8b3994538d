// Package note is a resource type that muster does not have: a file that
// holds one value, such as /etc/hostname. docs/adding-a-type.md shows how it is
// added, and tests take it through everything that is derived from a type.
package note

import (
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Spec are the properties of a note.
type Spec struct {
	model.Common
	Value string `json:"value,omitempty" sensitive:"true" jsonschema_description:"The value, one line; required except with absent"`
}

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	resource.CheckPath(&out, "name", "the path of a note", s.Name)
	switch {
	case s.Value == "" && s.Ensure != model.EnsureAbsent:
		out.Property("value", "for example value: web01", "a note needs a value")
	case strings.ContainsAny(s.Value, "\n\r"):
		out.Property("value", "write it on one line", "a value has no line breaks: %q", s.Value)
	}

	return out
}

// State is the observed state of a note.
type State struct {
	model.CommonState
	Value string `json:"value" jsonschema_description:"Current value"`
}
