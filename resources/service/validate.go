package service

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// allowed are the characters of a service name.
const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:~-"

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	const hint = "letters, digits and . _ + : ~ - are allowed"
	switch {
	case strings.Contains(s.Name, "@"):
		out.Property("name", "instances of templates are not managed", "invalid service name %q: @ is not allowed", s.Name)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !strings.ContainsRune(allowed, r) }):
		out.Property("name", hint, "service name contains dangerous characters: %q", s.Name)
	case strings.HasPrefix(s.Name, "-") || strings.HasPrefix(s.Name, "."):
		out.Property("name", "begin it with a letter or digit", "invalid service name %q: it would be taken for an option or a path", s.Name)
	case len(UnitName(s.Name)) > maxUnitName:
		out.Property("name", "", "service name is too long: %d bytes", len(s.Name))
	}

	return out
}
