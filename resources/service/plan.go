package service

import (
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Plan compares whether the service runs and whether it is enabled with what is
// wanted, one apart from the other. A refresh restarts what runs and is to run,
// and is ignored by what is to be stopped.
// What is about to run counts as stopped, and is stopped all the same.
// Its error is something that cannot be done to the service as it is.
func (*Type) Plan(spec *Spec, state *State, refresh bool) (plan resource.Plan, err error) {
	running, toRun := state.Metadata.Running, spec.Ensure != EnsureStopped
	plan.Unrefreshed = !toRun
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

// cannot returns the error of an obstacle, nil when there is none.
func cannot(spec *Spec, what string, obstacle error) error {
	if obstacle == nil {
		return nil
	}

	return fmt.Errorf("%s cannot be %s: %w", spec.Name, what, obstacle)
}
