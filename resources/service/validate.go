package service

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
)

// allowed lists the characters of a service name: the characters of unit names, and + and ~,
// which UnitName escapes.
const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+:~@\\-"

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	const hint = "use letters, digits, . _ + : ~ @ - and escapes of systemd-escape"
	bare, suffix := cutSuffix(s.Name)
	template, instance, isInstance := strings.Cut(bare, "@")
	isRoot := bare == "-" && (suffix == ".mount" || suffix == ".slice")
	switch {
	case isInstance && (template == "" || instance == ""):
		out.Property("name", "name an instance of a template: name@instance", "invalid service name %q", s.Name)
	case strings.ContainsFunc(s.Name, func(r rune) bool { return !strings.ContainsRune(allowed, r) }):
		out.Property("name", hint, "service name contains dangerous characters: %q", s.Name)
	case strings.HasPrefix(s.Name, "-") && !isRoot || strings.HasPrefix(s.Name, "."):
		out.Property("name", "begin it with a letter or digit", "invalid service name %q: it would be taken for an option or a path", s.Name)
	case len(UnitName(s.Name)) > maxUnitName:
		out.Property("name", "", "service name is too long: %d bytes", len(s.Name))
	}

	if choices := []Action{"", Restart, Reload, ReloadOrRestart}; !slices.Contains(choices, s.Refresh) {
		out.Property("refresh", "one of restart, reload, reload-or-restart", "invalid refresh %q", string(s.Refresh))
	}
	if is(s.Masked, true) && (s.Ensure != EnsureStopped || is(s.Enable, true)) {
		out.Property("masked", "set ensure: stopped, and leave out enable", "a masked service can neither run nor start")
	}

	return out
}
