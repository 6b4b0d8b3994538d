package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/resource"
)

// Type is the service type.
type Type struct{}

// New returns the type with its providers, for resources.All.
func New(providers ...ServiceProvider) *resource.Type { return resource.Of(Type{}, providers...) }

// Info describes the type. Packages also provide unit files, and a starting service creates files.
func (Type) Info() resource.Info {
	return resource.Info{
		Name:         "service",
		Summary:      "System services, running or stopped, and whether they start at boot",
		NameHelp:     "the name of the service, such as nginx",
		Argument:     "ensure",
		Abbreviation: "svc",
		Ensures:      []string{EnsureRunning, EnsureStopped},
		EnsureHelp:   "Whether it runs now",
		Reads:        resource.Units | resource.Paths | resource.Packages,
		Writes:       resource.Units | resource.Paths,
		Refreshes:    true,
	}
}

// New returns properties with restart as the refresh action.
func (Type) New() *Spec { return &Spec{Refresh: Restart} }

// StatusAll reads all services with one command.
func (Type) StatusAll(ctx context.Context, env resource.Env, p ServiceProvider, specs []*Spec) ([]*State, []error) {
	names := make([]string, len(specs))
	for i, spec := range specs {
		names[i] = spec.Name
	}
	states, errs := p.StatusAll(ctx, env, names)
	for i := range errs {
		states[i], errs[i] = missing(p, specs[i], states[i], errs[i])
	}

	return states, errs
}

// missing returns the state of a missing service that need not exist, or else an error with the resources
// that may provide it.
func missing(p ServiceProvider, spec *Spec, state *State, err error) (*State, error) {
	switch {
	case !errors.Is(err, ErrNotFound):
		return state, err
	case state != nil && spec.Ensure == EnsureStopped && !is(spec.Enable, true):
		return state, nil
	case spec.Ensure == EnsureStopped && (is(spec.Enable, false) || is(spec.Masked, true)), errors.Is(err, ErrStopped) && spec.Ensure == EnsureStopped && !is(spec.Enable, true):
		return &State{
			CommonState: model.CommonState{Ensure: EnsureStopped}, Missing: true,
			Metadata: Metadata{Name: spec.Name, Provider: p.Name(), Active: "inactive", UnitFile: "not-found"},
		}, nil
	default:
		err = fmt.Errorf("%w (correct its name, see systemctl list-unit-files, or declare what installs it before)", err)
		return nil, resource.PrerequisiteError{Needs: relations(spec), Err: err}
	}
}

// Prepare makes the service manager read its files again.
func (Type) Prepare(ctx context.Context, env resource.Env, p ServiceProvider, _ []*Spec) error {
	return p.Reload(ctx, env)
}

// Action changes a service.
type Action string

// The actions of plans.
const (
	Start           Action = "start"
	Stop            Action = "stop"
	Restart         Action = "restart"
	Reload          Action = "reload"
	ReloadOrRestart Action = "reload-or-restart"
	Enable          Action = "enable"
	Reenable        Action = "reenable"
	Disable         Action = "disable"
	Mask            Action = "mask"
	Unmask          Action = "unmask"
)

// ServiceProvider is a service manager.
type ServiceProvider interface {
	resource.Provider
	// StatusAll reads with one command which services run and which services start at boot. Both
	// results have the length of services. The error for a missing service is ErrNotFound, together
	// with a state if the service still runs.
	StatusAll(ctx context.Context, env resource.Env, services []string) ([]*State, []error)
	// ChangeAll applies one action to services with one command, and waits until they started or
	// stopped. Its errors have the length of services, nil where the action succeeded as far as
	// known. An error carries the last lines of the service's log, as resource.CommandError.
	ChangeAll(ctx context.Context, env resource.Env, action Action, services []string) []error
	// Reload makes the service manager read all its files again.
	Reload(ctx context.Context, env resource.Env) error
	// AreStarted reports which services run, or will run because another user started them.
	AreStarted(ctx context.Context, env resource.Env, services []string) []bool
	// IsDeferred reports whether a change of a service is made at the end of the run, because it ends muster
	// itself.
	IsDeferred(ctx context.Context, env resource.Env, action Action, service string) bool
	// Defer returns a function that makes the change at the end of the run. Until then the state
	// of the service includes the change.
	Defer(ctx context.Context, env resource.Env, action Action, service string) func(context.Context) error
	// Deferred returns the function of a stop that an earlier attempt of the run deferred, nil for none.
	Deferred(ctx context.Context, env resource.Env, service string) func(context.Context) error
	// Watches returns the points that change with a service.
	Watches(service string) []watch.Point
}

// Plan compares the service with the spec: whether it runs, is enabled and is masked, each
// independently. A refresh applies to a running service with ensure running; a service with ensure
// stopped ignores it. A starting service counts as stopped, and is stopped. An error is a change that
// is impossible in this state of the service.
func (Type) Plan(spec *Spec, state *State, refresh bool) (plan resource.Plan, err error) {
	plan.Unrefreshed = spec.Ensure == EnsureStopped
	if state.Missing {
		plan.Missing = relations(spec)
	}
	masked, o := state.Metadata.UnitFile, state.Obstacles
	unmasks := is(spec.Masked, false) && strings.HasPrefix(masked, "masked")
	if unmasks {
		plan.Add(model.Change{Action: string(Unmask), Message: "Would have unmasked", Property: "masked", From: "true", To: "false"})
		o = Obstacles{Reload: o.Reload}
	}
	err = errors.Join(planRun(&plan, spec, state, o, refresh), planEnable(&plan, spec, state, o, unmasks))
	if is(spec.Enable, true) && state.Metadata.Enabled {
		plan.ComparedWith = unitFiles(spec)
	}
	if is(spec.Masked, true) && masked != "masked" {
		plan.Add(model.Change{Action: string(Mask), Message: "Would have masked", Property: "masked", From: "false", To: "true"})
		err = errors.Join(err, cannot(spec, "masked", state.Obstacles.Mask))
	}

	return plan, err
}

// planRun adds the change that starts, stops or refreshes the service.
func planRun(plan *resource.Plan, spec *Spec, state *State, o Obstacles, refresh bool) error {
	running, toRun := state.Metadata.Running, spec.Ensure != EnsureStopped
	ensure := model.Change{Property: "ensure", From: state.Ensure, To: spec.Ensure}
	if state.Starting {
		ensure.From = state.Metadata.Active
	}
	switch {
	case (running || state.Starting) && !toRun:
		ensure.Action, ensure.Message = string(Stop), "Would have stopped"
		plan.Add(ensure)
	case !running && toRun:
		ensure.Action, ensure.Message = string(Start), "Would have started"
		plan.Add(ensure)
		return cannot(spec, "started", o.Start)
	case running && refresh && spec.Refresh == Reload:
		plan.Add(model.Change{Action: string(Reload), Message: "Would have reloaded"})
		return cannot(spec, "reloaded", cmp.Or(o.Start, o.Reload))
	case running && refresh && spec.Refresh == ReloadOrRestart:
		plan.Add(model.Change{Action: string(ReloadOrRestart), Message: "Would have reloaded or restarted"})
		return cannot(spec, "restarted", o.Start)
	case running && refresh:
		plan.Add(model.Change{Action: string(Restart), Message: "Would have restarted"})
		return cannot(spec, "restarted", o.Start)
	}

	return nil
}

// planEnable adds the change that enables or disables the service. Whether a masked service is enabled
// is unknown until it is unmasked.
func planEnable(plan *resource.Plan, spec *Spec, state *State, o Obstacles, unmasks bool) error {
	if is(spec.Enable, true) && state.Metadata.Enabled && !unmasks && state.Install != nil {
		message := "Would have enabled again, because its links differ from its [Install] section"
		if len(state.Install) == 0 {
			message = "Would have removed the links that enable it, because its unit file has no [Install] section anymore"
		}
		plan.Add(model.Change{
			Action: string(Reenable), Message: message, Property: "enable",
			From: strings.Join(state.Links, " "), To: strings.Join(state.Install, " "),
		})
		return nil
	}
	if spec.Enable == nil || (*spec.Enable == state.Metadata.Enabled && !unmasks) {
		return nil
	}
	change := model.Change{Property: "enable", From: fmt.Sprint(state.Metadata.Enabled), To: fmt.Sprint(*spec.Enable)}
	if *spec.Enable {
		change.Action, change.Message = string(Enable), "Would have enabled"
		plan.Add(change)
		return cannot(spec, "enabled", o.Enable)
	}
	change.Action, change.Message = string(Disable), "Would have disabled"
	plan.Add(change)

	return cannot(spec, "disabled", o.Disable)
}

// cannot wraps an obstacle, nil for none.
func cannot(spec *Spec, what string, obstacle error) error {
	if obstacle == nil {
		return nil
	}

	return fmt.Errorf("%s cannot be %s: %w", spec.Name, what, obstacle)
}

// Relations order a service after the files of its unit, the files of the unit that it starts, and
// the package with its name. A masked service provides its mask.
func (Type) Relations(spec *Spec) resource.Relations {
	needs := relations(spec)
	switch bare, suffix := cutSuffix(spec.Name); suffix {
	case ".timer", ".socket", ".path":
		needs = append(needs, files(bare+".service")...)
	}

	out := resource.Relations{Needs: resource.Needs(needs...)}
	if is(spec.Masked, true) {
		out.Provides = resource.Provides(resource.MaskNeed("/etc/systemd/system/" + UnitName(spec.Name)))
	}

	return out
}

// unitFiles returns the needs for the unit file of a service and for its drop-ins.
func unitFiles(spec *Spec) []string {
	var out []string
	for _, word := range relations(spec) {
		if strings.HasPrefix(word, resource.PathNeed("")) {
			out = append(out, word, word+"/")
		}
	}

	return out
}

// relations returns the needs of a missing service: the resources that may provide it.
func relations(spec *Spec) []string {
	bare, suffix := cutSuffix(spec.Name)
	template, _, isInstance := strings.Cut(bare, "@")
	needs := files(spec.Name)
	if isInstance {
		needs = append(needs, files(template+"@"+suffix)...)
	}

	return append(needs, "package:"+template)
}

// files returns the possible paths of the unit file of a service.
func files(service string) []string {
	var needs []string
	unit := UnitName(service)
	for _, dir := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"} {
		needs = append(needs, resource.PathNeed(dir+"/systemd/system/"+unit), resource.PathNeed(dir+"/systemd/system/"+unit+".d"))
	}
	if bare, suffix := cutSuffix(service); suffix == ".service" {
		needs = append(needs, resource.PathNeed("/etc/init.d/"+bare))
	}

	return needs
}

// Watches returns the watches of the service manager.
func (Type) Watches(p ServiceProvider, spec *Spec) []watch.Point {
	return p.Watches(spec.Name)
}
