// Package service is the resource type for system services: whether they run,
// and whether they start at boot.
package service

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// Spec are the properties of a service.
type Spec struct {
	model.Common
	Enable  *bool  `json:"enable,omitempty" jsonschema_description:"Whether it starts at boot; unset: not managed"`
	Masked  *bool  `json:"masked,omitempty" jsonschema_description:"Whether nothing can start it; unset leaves that as it is"`
	Refresh Action `json:"refresh,omitempty" jsonschema:"enum=restart,enum=reload,enum=reload-or-restart,default=restart" jsonschema_description:"Action after a change of a resource that it subscribes to"`
}

func is(property *bool, value bool) bool { return property != nil && *property == value }

// CanonicalName returns the name of the unit; .service is optional in the spec.
func (s *Spec) CanonicalName() string { return UnitName(s.Name) }

// The values of ensure.
const (
	EnsureRunning = "running"
	EnsureStopped = "stopped"
)

// ErrNotFound means that the service does not exist on the machine.
var ErrNotFound = errors.New("service not found")

// ErrStopped is an ErrNotFound: a unit without a file that muster stopped, such as a transient unit.
var ErrStopped = fmt.Errorf("%w: muster stopped it, and a unit without a file exists only while it runs", ErrNotFound)

// State is the observed state of a service. Its ensure is running or stopped.
type State struct {
	model.CommonState
	Metadata Metadata `json:"metadata"`

	// Obstacles are the changes that are impossible in this state.
	Obstacles Obstacles `json:"-"`
	// Starting marks a stopped service that is about to run: it takes long to
	// start, or restarts each time it ends.
	Starting bool `json:"-"`
	// Links are the links that enable a service, and Install the links of its [Install] section.
	// Both are nil unless they differ. Install is empty for a section that was removed.
	Links, Install []string `json:"-"`
	// Missing marks a service that does not exist.
	Missing bool `json:"-"`
	// Since is when it last began to run.
	Since time.Time `json:"-"`
	// Outdated reports that the service manager has not read the current unit files yet.
	Outdated bool `json:"-"`
}

// NeedsReload reports that the service manager must read its files first.
func (s *State) NeedsReload() bool { return s.Outdated }

// startSlack is how far the times of files and of systemd may differ.
const startSlack = 20 * time.Millisecond

// IsStartedSince reports whether the service runs since after a time.
func (s *State) IsStartedSince(at time.Time) bool {
	return s.Metadata.Running && s.Since.After(at.Add(startSlack))
}

// Metadata describes a service.
type Metadata struct {
	Name     string `json:"name" jsonschema_description:"The service"`
	Provider string `json:"provider"`
	Enabled  bool   `json:"enabled" jsonschema_description:"Whether it starts at boot"`
	Running  bool   `json:"running" jsonschema_description:"Whether it is running"`
	// Active and UnitFile are in the words of the service manager.
	Active   string `json:"active_state" jsonschema_description:"Answer of systemctl is-active"`
	UnitFile string `json:"enabled_state" jsonschema_description:"Answer of systemctl is-enabled"`
}

// Obstacles are the reasons why a change is impossible; nil means possible.
type Obstacles struct{ Start, Reload, Enable, Disable, Mask error }

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

// maxUnitName is the longest unit name of systemd.
const maxUnitName = 255

// UnitName returns the full unit name of a service: it adds .service to a name without a unit suffix,
// and escapes characters that are invalid in unit names.
func UnitName(service string) string {
	bare, suffix := cutSuffix(service)

	return strings.NewReplacer("+", `\x2b`, "~", `\x7e`).Replace(bare) + suffix
}

// cutSuffix splits a service name into the bare name and its unit suffix,
// .service by default.
func cutSuffix(service string) (bare, suffix string) {
	for _, suffix := range []string{".socket", ".device", ".mount", ".automount", ".swap", ".target", ".path", ".timer", ".slice", ".scope"} {
		if bare, found := strings.CutSuffix(service, suffix); found {
			return bare, suffix
		}
	}

	return strings.TrimSuffix(service, ".service"), ".service"
}
