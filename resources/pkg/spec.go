// Package pkg is the resource type for the packages of the operating system.
package pkg

import (
	"regexp"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// EnsureLatest is the newest version in the node's repositories, EnsurePurged an
// absent package without its configuration files.
const (
	EnsureLatest = "latest"
	EnsurePurged = "purged"
)

// Spec are the properties of a package. Its ensure is present, absent, purged,
// latest or a version.
type Spec struct {
	model.Common
	CacheMaxAge   model.Duration `json:"cache_max_age,omitempty" jsonschema_description:"Refresh the package lists once a run when they are older than this; default: never"`
	Hold          *bool          `json:"hold,omitempty" jsonschema_description:"Whether the package manager holds it at its version; unset leaves the hold as it is"`
	Recommends    *bool          `json:"recommends,omitempty" jsonschema_description:"Whether the packages that it recommends are installed with it; unset leaves that to the package manager"`
	TargetRelease string         `json:"target_release,omitempty" jsonschema_description:"The release that it is installed from, such as bookworm-backports. For apt"`
}

// The characters of names and versions: none is special to a shell, a path or a
// package manager.
var (
	validName    = regexp.MustCompile(`^[a-zA-Z0-9._+:~-]+$`)
	validVersion = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._+:~^-]*$`)
)

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	switch {
	case !validName.MatchString(s.Name):
		out.Property("name", "letters, digits and . _ + : ~ - are allowed", "invalid package name %q", s.Name)
	case strings.ContainsAny(s.Name[:1], "-~"):
		out.Property("name", "begin it with a letter or digit", "a package name must not begin with %q: %q would be an option or a pattern", s.Name[:1], s.Name)
	case s.Provider == "apt" && strings.HasSuffix(s.Name, "-"):
		out.Property("name", "to remove a package set ensure: absent", "a package name must not end with -: apt would remove %q", strings.TrimSuffix(s.Name, "-"))
	}
	if s.wantsVersion() && (!validVersion.MatchString(s.Ensure) || !strings.ContainsAny(s.Ensure, "0123456789")) {
		out.Property("ensure", resource.EnsureMeant(s.Ensure, []string{"present", "absent"})+"present, absent, purged, latest or a version", "invalid ensure %q", s.Ensure)
	}
	if s.TargetRelease != "" && !validVersion.MatchString(s.TargetRelease) {
		out.Property("target_release", "name it as the package lists do", "invalid release %q", s.TargetRelease)
	}
	if s.Hold != nil && *s.Hold && s.isRemoved() {
		out.Property("hold", "leave it out", "hold: true contradicts ensure: %s", s.Ensure)
	}

	return out
}

// wantsVersion reports whether ensure is a version.
func (s *Spec) wantsVersion() bool {
	return s.Ensure != model.EnsurePresent && !s.isRemoved() && s.Ensure != EnsureLatest
}

// isRemoved reports whether the package is not to be installed.
func (s *Spec) isRemoved() bool { return s.Ensure == model.EnsureAbsent || s.Ensure == EnsurePurged }
