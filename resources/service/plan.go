package service

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

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
