// Package pkg is the resource type for the packages of the operating system.
package pkg

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the package type. Make it with New.
type Type struct {
	// busy locks the commands of package managers. It has one slot, so a waiting caller can give up.
	busy chan struct{}
	// lists are the outcomes of refreshes, guarded by busy.
	lists map[string]refreshed
}

// New returns the type with its providers, for resources.All.
func New(providers ...PackageProvider) *resource.Type {
	return resource.Of(&Type{busy: make(chan struct{}, 1), lists: map[string]refreshed{}}, providers...)
}

// Info describes the type. A package provides files, units and accounts. The effect of a change depends on
// the repository files.
func (*Type) Info() resource.Info {
	return resource.Info{
		Name:         "package",
		Summary:      "Packages of the operating system: installed, at a version, or absent",
		NameHelp:     "the name of a package",
		Argument:     "ensure",
		Abbreviation: "pkg",
		EnsureHelp:   "present in any version, absent, purged (absent without its configuration files), latest, or a version as the package manager writes it",
		Outputs:      []resource.Output{{Name: "version", Help: "The version that is installed, empty when none is"}},
		Reads:        resource.Packages | resource.Paths,
		Writes:       resource.Packages | resource.Paths | resource.Units | resource.Accounts,
	}
}

// New returns properties that want the package present.
func (*Type) New() *Spec { return &Spec{Common: model.Common{Ensure: model.EnsurePresent}} }

// Plan compares the installed version with the wanted one.
func (*Type) Plan(spec *Spec, state *State, _ bool) (plan resource.Plan, err error) {
	if spec.isRemoved() && state.NotAbsent != nil {
		return plan, state.NotAbsent
	}
	action, words := due(spec, state)
	defer func() { planHold(&plan, spec, state, action) }()
	if action == "" {
		return plan, nil
	}
	if state.Held && action != Configure && spec.Hold == nil && !(state.Removable && spec.isRemoved()) {
		return plan, fmt.Errorf("%w: %s is %s; release it with `%s` or change `ensure`", ErrHeld, spec.Name, state.Ensure, state.Unhold)
	}
	change := model.Change{Action: string(action), Message: words, Property: "ensure", From: state.Ensure, To: spec.Ensure}
	switch {
	case action == Configure || action == Reinstall:
		change.From, change.To = state.Broken, state.Ensure
	case spec.Ensure == EnsureLatest && state.Candidate != "":
		change.To = state.Candidate
	}
	plan.Add(change)
	for _, p := range state.forecast.removed {
		plan.Add(model.Change{Action: string(Uninstall), Message: "Would have uninstalled " + p.Names[0] + " too", Property: along + p.Names[0], From: p.Version, To: model.EnsureAbsent})
		for _, name := range p.Names {
			plan.Removes = append(plan.Removes, "package:"+name)
		}
	}
	plan.Fails = state.forecast.err

	return plan, nil
}

// planHold adds the change that holds or releases a package. A held package is held again after its
// change.
func planHold(plan *resource.Plan, spec *Spec, state *State, action Action) {
	switch {
	case spec.Hold == nil || (*spec.Hold == state.Held && (action == "" || !state.Held)):
	case *spec.Hold:
		plan.Fails = cmp.Or(plan.Fails, state.CannotHold)
		plan.Add(model.Change{Action: string(Hold), Message: "Would have held", Property: "hold", From: fmt.Sprint(state.Held), To: "true"})
	default:
		plan.Fails = cmp.Or(plan.Fails, state.CannotHold)
		plan.Add(model.Change{Action: string(Unhold), Message: "Would have released", Property: "hold", From: "true", To: "false"})
	}
}

// due returns the action of the decision table with its message, or none.
func due(spec *Spec, state *State) (Action, string) {
	switch {
	case spec.Ensure == EnsurePurged && (state.installed() || state.Residue):
		return Purge, "Would have purged"
	case spec.Ensure == model.EnsureAbsent && state.installed():
		return Uninstall, "Would have uninstalled"
	case spec.isRemoved():
		return "", ""
	case !state.installed() && spec.Ensure == model.EnsurePresent:
		return Install, "Would have installed"
	case !state.installed() && spec.Ensure == EnsureLatest:
		return Install, "Would have installed latest"
	case !state.installed():
		return Install, "Would have installed version " + spec.Ensure
	case spec.Ensure == EnsureLatest && (state.Candidate == "" || state.order < 0):
		return Upgrade, "Would have upgraded to latest"
	case spec.wantsVersion() && state.order < 0:
		return Upgrade, "Would have upgraded to " + spec.Ensure
	case spec.wantsVersion() && state.order > 0:
		return Downgrade, "Would have downgraded to " + spec.Ensure
	case state.Broken == halfInstalled:
		return Reinstall, "Would have reinstalled"
	case state.Broken != "":
		return Configure, "Would have configured"
	default:
		return "", ""
	}
}

// Verify checks the state after Apply. muster does not know the latest version, so with latest
// the package only has to be installed.
func (*Type) Verify(spec *Spec, _ resource.Outcome, after *State) error {
	switch {
	case spec.isRemoved() && after.installed():
		return fmt.Errorf("%s is still installed", after.Ensure)
	case spec.Ensure == EnsurePurged && after.Residue:
		return fmt.Errorf("its configuration files are still there")
	case spec.Hold != nil && *spec.Hold != after.Held:
		return fmt.Errorf("held is %t", after.Held)
	case spec.isRemoved():
		return nil
	case !after.installed():
		return fmt.Errorf("%s is not installed; if another package provides that name, use its name", spec.Name)
	case spec.wantsVersion() && after.order != 0:
		return fmt.Errorf("%s is installed, not %s", after.Ensure, spec.Ensure)
	case after.Broken != "":
		return fmt.Errorf("%s is %s", spec.Name, after.Broken)
	default:
		return nil
	}
}

// Relations name the package, with and without its architecture.
func (*Type) Relations(spec *Spec) resource.Relations {
	if spec.isRemoved() {
		return resource.Relations{}
	}
	provides := resource.Provides("package:" + spec.Name)
	if name, _, qualified := strings.Cut(spec.Name, ":"); qualified {
		provides = append(provides, resource.Provision{What: "package:" + name})
	}

	return resource.Relations{Provides: provides}
}

// Outputs returns the installed version, empty for none.
func (*Type) Outputs(_ *Spec, state *State, _ resource.Outcome) map[string]any {
	version := ""
	if state.installed() {
		version = state.Ensure
	}

	return map[string]any{"version": version}
}

// Watches returns the database of the package manager.
func (*Type) Watches(p PackageProvider, _ *Spec) []watch.Point { return p.Watches() }

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

func (s *Spec) wantsVersion() bool {
	return s.Ensure != model.EnsurePresent && !s.isRemoved() && s.Ensure != EnsureLatest
}

func (s *Spec) isRemoved() bool { return s.Ensure == model.EnsureAbsent || s.Ensure == EnsurePurged }

// State is the observed state of a package. Its ensure is the installed
// version, or absent.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"Metadata of the installed package"`
	// Candidate is the newest available version, read only for ensure latest.
	Candidate string `json:"candidate,omitempty" jsonschema_description:"Newest available version, known when ensure is latest"`
	Held      bool   `json:"held,omitempty" jsonschema_description:"Whether the package is on hold"`
	Residue   bool   `json:"residue,omitempty" jsonschema_description:"Whether configuration files of a removed package are left"`
	Broken    string `json:"broken,omitempty" jsonschema_description:"The package manager's word for an installation that is not complete"`

	// ChangedAt is when its files were last changed, if that is known.
	ChangedAt time.Time `json:"-"`

	// Unhold is the command that releases a held package. Removable reports that the held package may be
	// removed. CannotHold is why no package can be held, nil if holds work.
	Unhold     string `json:"-"`
	Removable  bool   `json:"-"`
	CannotHold error  `json:"-"`

	// NotAbsent is the error of CheckAbsent, nil if the package is absent.
	NotAbsent error `json:"-"`

	// order compares the installed version with the wanted one, or the candidate.
	order int
	// forecast is the effect of the pending change on other packages.
	forecast forecast
}

// halfInstalled is an installation with missing files.
const halfInstalled = "half-installed"

// Metadata describes an installed package.
type Metadata struct {
	Name     string         `json:"name"`
	Version  string         `json:"version"`
	Arch     string         `json:"arch,omitempty"`
	License  string         `json:"license,omitempty"`
	URL      string         `json:"url,omitempty"`
	Summary  string         `json:"summary,omitempty"`
	Provider string         `json:"provider"`
	Extended map[string]any `json:"extended,omitempty"`

	// Full is the version for comparisons; unlike Version it has an epoch.
	Full string `json:"-"`
}

// NewState returns the state of a package with its metadata. nil metadata mean that it is not installed.
func NewState(name string, m *Metadata) *State {
	state := &State{CommonState: model.CommonState{Name: name, Ensure: model.EnsureAbsent}, Metadata: m}
	if m != nil {
		state.Ensure = m.Version
	}

	return state
}

func (s *State) installed() bool { return s.Ensure != model.EnsureAbsent }
