package pkg

import (
	"cmp"
	"fmt"
	"strings"

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

// Watches returns the database of the package manager, if it is known.
func (*Type) Watches(p PackageProvider, _ *Spec) []watch.Point {
	if w, ok := p.(Watcher); ok {
		return w.Watches()
	}

	return nil
}
