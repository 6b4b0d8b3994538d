// Package apply is the resource type for child manifests. The resources of a child manifest become
// part of the run.
package apply

import (
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Spec are the properties of an apply.
type Spec struct {
	model.Common
	HealthCheckOnly bool           `json:"health_check_only,omitempty" jsonschema_description:"Only run the health checks of the child manifest; also when the parent only runs checks"`
	AllowApply      *bool          `json:"allow_apply,omitempty" jsonschema:"default=true" jsonschema_description:"Whether the child manifest may contain apply resources"`
	Data            map[string]any `json:"data,omitempty" jsonschema_description:"Data for the child manifest; overrides its own, and external data overrides both"`
}

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	switch {
	case strings.Contains(s.Name, "://"):
		out.Property("name", "fetch it to a file, or put it into the bundle", "a child manifest is a file, not a URL: %q", s.Name)
	case s.Name == "-":
		out.Property("name", "give its path", "a child manifest cannot be read from standard input")
	case filepath.Clean(s.Name) != s.Name:
		out.Property("name", "write it as "+filepath.Clean(s.Name), "the path must be clean, without . or .. or a / too many: %q", s.Name)
	case strings.ContainsRune(s.Name, 0):
		out.Property("name", "", "the path must not contain a NUL byte")
	}

	return out
}

// inclusion returns the child manifest of a resource.
func (s *Spec) inclusion() resource.Inclusion {
	return resource.Inclusion{
		Source: s.Name, Data: s.Data, Noop: s.Noop, HealthCheckOnly: s.HealthCheckOnly,
		DenyApply: s.AllowApply != nil && !*s.AllowApply,
	}
}
