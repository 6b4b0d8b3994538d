package service

import (
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Plan compares whether the service runs and whether it is enabled,
// independently, with what is wanted. A refresh restarts a running service that
// is to run; one that is to be stopped ignores it. A starting service counts as
// stopped, and is stopped. An error is a change that cannot be made to the
// service in this state.
func (*Type) Plan(spec *Spec, state *State, refresh bool) (plan resource.Plan, err error) {
	running, toRun := state.Metadata.Running, spec.Ensure != EnsureStopped
	plan.Unrefreshed = !toRun
	if state.Missing {
		plan.Missing = relations(spec)
	}
	ensure := model.Change{Property: "ensure", From: state.Ensure, To: spec.Ensure}
	if state.Starting {
		ensure.From = state.Metadata.Active
	}
	var obstacles []error
	switch {
	case (running || state.Starting) && !toRun:
		ensure.Action, ensure.Message = string(Stop), "Would have stopped"
		plan.Add(ensure)
	case !running && toRun:
		ensure.Action, ensure.Message = string(Start), "Would have started"
		plan.Add(ensure)
		obstacles = append(obstacles, cannot(spec, "started", state.Obstacles.Start))
	case running && refresh:
		plan.Add(model.Change{Action: string(Restart), Message: "Would have restarted"})
		obstacles = append(obstacles, cannot(spec, "restarted", state.Obstacles.Start))
	}
	if spec.Enable == nil || *spec.Enable == state.Metadata.Enabled {
		return plan, errors.Join(obstacles...)
	}
	enable := model.Change{Property: "enable", From: fmt.Sprint(state.Metadata.Enabled), To: fmt.Sprint(*spec.Enable)}
	if *spec.Enable {
		enable.Action, enable.Message = string(Enable), "Would have enabled"
		obstacles = append(obstacles, cannot(spec, "enabled", state.Obstacles.Enable))
	} else {
		enable.Action, enable.Message = string(Disable), "Would have disabled"
		obstacles = append(obstacles, cannot(spec, "disabled", state.Obstacles.Disable))
	}
	plan.Add(enable)

	return plan, errors.Join(obstacles...)
}

// cannot wraps an obstacle, nil for none.
func cannot(spec *Spec, what string, obstacle error) error {
	if obstacle == nil {
		return nil
	}

	return fmt.Errorf("%s cannot be %s: %w", spec.Name, what, obstacle)
}
